-- register announces a new dispatcher of the queue.
--
-- KEYS  1 ticks  2 info
-- ARGV  1 dispatcher id, never used before  2 time to live, ms  3 info JSON
-- Reply 1 = registered, 0 = FENCED: the id is known already, alive or condemned
-- Keeps: tick and info come together.
local types = {'zset', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

redis.call('ZREM', KEYS[1], '') -- a first write that a full Redis allows, so that it allows the next ones
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return 1
