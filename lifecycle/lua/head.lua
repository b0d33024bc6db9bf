-- head tells the next task of the lists from others, without answering its payload, and changes nothing.
--
-- KEYS  1 src  2 landing  3 stats
-- ARGV  1 gone, as answered the last time; '' = never    2 '1' = look, else only say whether there is one
-- Reply {gone, length, digest}
--       gone    tasks completed or buried so far
--       length  of the next payload, bytes; -1 = the lists are empty, or gone has moved on; -2 = there is one
--       digest  SHA-1 of its first and last 2 KiB
-- A look copies the payload within Redis, which takes 0.2 ms for 100 kB and 50 ms for 10 MB.
local types = {'list', 'list', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local counts = redis.call('HMGET', KEYS[3], 'completed', 'buried')
local gone = tonumber(counts[1] or 0) + tonumber(counts[2] or 0)
if ARGV[1] ~= '' and tonumber(ARGV[1]) ~= gone then return {gone, -1, ''} end
if ARGV[2] ~= '1' then
  local there = redis.call('EXISTS', KEYS[1], KEYS[2]) > 0
  return {gone, there and -2 or -1, ''}
end
local head = redis.call('LINDEX', KEYS[2], -1) or redis.call('LINDEX', KEYS[1], -1)
if not head then return {gone, -1, ''} end
return {gone, #head, redis.sha1hex(string.sub(head, 1, 2048) .. string.sub(head, -2048))}
