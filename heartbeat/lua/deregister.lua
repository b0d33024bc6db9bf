-- deregister forgets a dispatcher that holds no task.
--
-- KEYS  1 ticks  2 info  3 suspects  4 worker
-- ARGV  1 dispatcher id
-- Reply {ids of up to 1000 tasks still in flight}: when there are any, nothing was changed
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
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return {}
