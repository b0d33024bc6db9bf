-- bury moves a task to the dead letters.
--
-- KEYS  1 worker  2 meta  3 crashes  4 dead  5 holder  6 stats
-- ARGV  1 task id  2 lease token  3 metadata
-- Reply 1 = buried, 0 = not the caller's under that token
-- Keeps: the task moves from the in-flight hash to dead in one step; an ordered queue goes on with the next task.
local types = {'hash', 'hash', 'hash', 'zset', 'string', 'hash'}
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
redis.call('HSET', KEYS[2], id, ARGV[3])
redis.call('ZADD', KEYS[4], now, id)
if redis.call('GET', KEYS[5]) == id then redis.call('DEL', KEYS[5]) end
redis.call('HINCRBY', KEYS[6], 'buried', 1)
return 1
