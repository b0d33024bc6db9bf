-- deregister forgets a dispatcher that holds no task.
--
-- KEYS  1 ticks  2 info  3 suspects  4 worker
-- ARGV  1 dispatcher id
-- Reply {ids of up to 1000 tasks still in flight}: nothing was changed; 1 = forgotten, 0 = FENCED: it was unknown or
--       condemned, and is forgotten all the same
-- Keeps: whoever holds tasks stays known, so that a sweep finds them.
local types = {'zset', 'hash', 'hash', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local held = redis.call('HRANDFIELD', KEYS[4], 1000)
if #held > 0 then return held end
local tick = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if not tick or tonumber(tick) == -1 then return 0 end
return 1
