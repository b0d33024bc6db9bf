-- redrive makes dead letters due now, with metadata that begins anew.
--
-- KEYS  1 dead  2 delayed  3 body  4 meta  5 crashes
-- ARGV  task id, metadata, task id, ...; at most 1000 tasks
-- Reply {ids that are no dead letters, or have lost their body}; they are left alone
-- Keeps: each task moves from dead to delayed in one step.
local types = {'zset', 'zset', 'hash', 'hash', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local refused = {}
for i = 1, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('ZSCORE', KEYS[1], id) and redis.call('HEXISTS', KEYS[3], id) == 1 then
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[5], id)
    redis.call('HSET', KEYS[4], id, ARGV[i + 1])
    redis.call('ZADD', KEYS[2], now, id)
  else
    refused[#refused + 1] = id
  end
end
return refused
