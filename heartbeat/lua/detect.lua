-- detect answers the dispatchers that look dead: condemned, tick run out, or tick further ahead than a beat could put
-- it. It changes nothing; sweep looks again and decides.
--
-- KEYS  1 ticks
-- ARGV  none
-- Reply {dispatcher ids}, at most 1000 of each kind
local got = redis.call('TYPE', KEYS[1]).ok
if got ~= 'zset' and got ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' holds a ' .. got .. ', a zset was expected')
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now, 'LIMIT', 0, 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. (now + 300000), '+inf', 'LIMIT', 0, 1000)) do
  ids[#ids + 1] = id
end
return ids
