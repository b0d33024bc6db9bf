-- abandon parks a task whose attempt failed until it is due again.
--
-- KEYS  1 worker  2 meta  3 crashes  4 delayed  5 stats
-- ARGV  1 task id  2 lease token  3 delay, ms  4 metadata
-- Reply 1 = parked, 0 = not the caller's under that token
-- Keeps: the task moves from the in-flight hash to delayed in one step. An ordered queue's holder stays: the failing
--        head is retried in place.
local types = {'hash', 'hash', 'hash', 'zset', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local id = ARGV[1]
if redis.call('HGET', KEYS[1], id) ~= ARGV[2] then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('HDEL', KEYS[1], id)
redis.call('HDEL', KEYS[3], id)
redis.call('HSET', KEYS[2], id, ARGV[4])
redis.call('ZADD', KEYS[4], now + ARGV[3], id)
redis.call('HINCRBY', KEYS[5], 'abandoned', 1)
return 1
