-- purge deletes dead letters.
--
-- KEYS  1 dead  2 body  3 meta  4 crashes
-- ARGV  task ids, at most 1000
-- Reply {ids that are no dead letters}; they are left alone
-- Keeps: only what is dead goes, with everything kept of it.
local types = {'zset', 'hash', 'hash', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local refused = {}
for _, id in ipairs(ARGV) do
  if redis.call('ZREM', KEYS[1], id) == 1 then
    redis.call('HDEL', KEYS[2], id)
    redis.call('HDEL', KEYS[3], id)
    redis.call('HDEL', KEYS[4], id)
  else
    refused[#refused + 1] = id
  end
end
return refused
