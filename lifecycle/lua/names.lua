-- names answers field names of a hash without the values, which may be large: all of a small hash, else those of one HSCAN
-- step. That copies the values within Redis, which takes some 15 ms per MB; only since 7.4 can it leave them out.
--
-- KEYS  1 a HASH
-- ARGV  1 cursor  2 count  3 at '0', of how many fields a hash is small
-- Reply {next cursor, bytes of the values that were copied, name, name, ...}
-- Keeps: it changes nothing.
local got = redis.call('TYPE', KEYS[1]).ok
if got ~= 'hash' and got ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. got .. ', a hash was expected')
end

if ARGV[1] == '0' and redis.call('HLEN', KEYS[1]) <= tonumber(ARGV[3]) then
  local reply = redis.call('HKEYS', KEYS[1])
  table.insert(reply, 1, 0)
  table.insert(reply, 1, '0')
  return reply
end
local step = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local reply, bytes = {step[1], 0}, 0
for i = 1, #step[2], 2 do
  reply[#reply + 1] = step[2][i]
  bytes = bytes + #step[2][i + 1]
end
reply[2] = bytes
return reply
