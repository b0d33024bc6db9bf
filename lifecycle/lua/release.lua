-- release gives tasks back uncharged: they are due at once, before everything else, the oldest first.
--
-- KEYS  1 worker  2 meta  3 delayed  4 stats
-- ARGV  task id, lease token, metadata ('' = unchanged), task id, ...; at most 1000 tasks
-- Reply {ids that are not the caller's under that token}
-- Keeps: each task moves from the in-flight hash to delayed in one step. Its crash count stays: no attempt has ended.
local types = {'hash', 'hash', 'zset', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local refused, released = {}, 0
for i = 1, #ARGV, 3 do
  local id = ARGV[i]
  if redis.call('HGET', KEYS[1], id) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], id)
    if ARGV[i + 2] ~= '' then redis.call('HSET', KEYS[2], id, ARGV[i + 2]) end
    redis.call('ZADD', KEYS[3], 0, id)
    released = released + 1
  else
    refused[#refused + 1] = id
  end
end
if released > 0 then redis.call('HINCRBY', KEYS[4], 'released', released) end
return refused
