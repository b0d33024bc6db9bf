-- orphan makes a dispatcher that holds tasks without being known one that a sweep finds: its tick has run out long ago.
--
-- KEYS  1 ticks  2 worker
-- ARGV  1 dispatcher id
-- Reply 1 = it was an orphan, 0 = it is known, or holds nothing
-- Keeps: nothing is taken here; the sweep suspects first, as it does with anybody.
local types = {'zset', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

if redis.call('ZSCORE', KEYS[1], ARGV[1]) or redis.call('HLEN', KEYS[2]) == 0 then return 0 end
redis.call('ZREM', KEYS[1], '') -- a first write that a full Redis allows, so that it allows the next one
redis.call('ZADD', KEYS[1], 1, ARGV[1])
return 1
