-- complete forgets tasks that were delivered.
--
-- KEYS  1 worker  2 body  3 meta  4 crashes  5 holder  6 stats
-- ARGV  task id, lease token, task id, ...; at most 1000 tasks
-- Reply {ids that are not the caller's under that token}; they are left alone and hurt no other
-- Keeps: a task leaves the in-flight hash and everything kept of it together.
local types = {'hash', 'hash', 'hash', 'hash', 'string', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local held = redis.call('GET', KEYS[5])
local ours, refused, seen, ends_order = {}, {}, {}, false
for i = 1, #ARGV, 2 do
  local id = ARGV[i]
  if not seen[id] and redis.call('HGET', KEYS[1], id) == ARGV[i + 1] then
    seen[id] = true
    ours[#ours + 1] = id
    ends_order = ends_order or held == id
  else
    refused[#refused + 1] = id
  end
end

if #ours > 0 then
  redis.call('HDEL', KEYS[1], unpack(ours))
  redis.call('HDEL', KEYS[2], unpack(ours))
  redis.call('HDEL', KEYS[3], unpack(ours))
  redis.call('HDEL', KEYS[4], unpack(ours))
  if ends_order then redis.call('DEL', KEYS[5]) end
  redis.call('HINCRBY', KEYS[6], 'completed', #ours)
end
return refused
