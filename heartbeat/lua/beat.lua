-- beat says that a dispatcher lives.
--
-- KEYS  1 ticks
-- ARGV  1 dispatcher id  2 time to live, ms
-- Reply 1 = alive until now + time to live, 0 = FENCED: unknown or condemned
-- Keeps: who was condemned stays so.
local got = redis.call('TYPE', KEYS[1]).ok
if got ~= 'zset' and got ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. got .. ', a zset was expected')
end

local tick = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not tick or tonumber(tick) == -1 then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('ZREM', KEYS[1], '') -- a first write that a full Redis allows, so that it allows the next ones
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 1
