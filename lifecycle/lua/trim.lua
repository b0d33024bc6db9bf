-- trim deletes the oldest dead letters: those past their age, and those beyond a count.
--
-- KEYS  1 dead  2 body  3 meta  4 crashes
-- ARGV  1 age, ms, 0 = any  2 count, 0 = any  3 batch, 1..1000
-- Reply how many were deleted; when it is the batch there may be more
-- Keeps: only what is dead goes, with everything kept of it.
local types = {'zset', 'hash', 'hash', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local age, count, batch = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local excess = 0
if age > 0 then excess = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. (now - age)) end
if count > 0 then excess = math.max(excess, redis.call('ZCARD', KEYS[1]) - count) end
excess = math.min(excess, batch)
if excess <= 0 then return 0 end

local ids = redis.call('ZRANGE', KEYS[1], 0, excess - 1)
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
redis.call('HDEL', KEYS[3], unpack(ids))
redis.call('HDEL', KEYS[4], unpack(ids))
return #ids
