-- mend finds, and on request repairs, tasks that no transition could have left so: bodies in no index, and parked ids
-- without a body.
--
-- KEYS  1 ticks  2 body  3 delayed  4 dead  5 crashes  6... the worker hash of every dispatcher in ticks
-- ARGV  1 '1' = repair, '0' = look  2 number of dispatchers  3... their ids  then task ids, at most 100
-- Reply {code, id, kind, id, kind, ...}
--       RETRY    the dispatchers named are not those of ticks any more: nothing was looked at
--       LOOKED   and for each task that is not as it should be, STRAY (given back) or BODILESS (buried)
--       What became of a stray's last attempt is unknown, as after a crash: its next one says so.
-- Keeps: a task that any index holds stays where it is.
--
-- There may be thousands of dispatchers: of their hashes only what is looked for is asked, once for each task.
local types = {'zset', 'hash', 'zset', 'zset', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local repair, dispatchers = ARGV[1] == '1', tonumber(ARGV[2])
local named = {}
for i = 1, dispatchers do named[ARGV[2 + i]] = true end
local ticks = redis.call('ZRANGE', KEYS[1], 0, -1)
if #ticks ~= dispatchers then return {'RETRY'} end
for _, id in ipairs(ticks) do
  if not named[id] then return {'RETRY'} end
end

local function in_flight(id)
  for i = 6, #KEYS do
    if redis.call('HEXISTS', KEYS[i], id) == 1 then return true end
  end
  return false
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply, strays, bodiless = {'LOOKED'}, {}, {}
for i = 3 + dispatchers, #ARGV do
  local id = ARGV[i]
  local parked = redis.call('ZSCORE', KEYS[3], id)
  if redis.call('HEXISTS', KEYS[2], id) == 0 then
    if parked then
      bodiless[#bodiless + 1] = id
      reply[#reply + 1] = id
      reply[#reply + 1] = 'BODILESS'
    end
  elseif not parked and not redis.call('ZSCORE', KEYS[4], id) and not in_flight(id) then
    strays[#strays + 1] = id
    reply[#reply + 1] = id
    reply[#reply + 1] = 'STRAY'
  end
end

if repair then
  redis.call('ZREM', KEYS[3], '') -- a first write that a full Redis allows, so that it allows the next ones
  for _, id in ipairs(strays) do
    redis.call('ZADD', KEYS[3], 0, id)
    redis.call('HINCRBY', KEYS[5], id, 1)
  end
  for _, id in ipairs(bodiless) do
    redis.call('ZREM', KEYS[3], id)
    redis.call('ZADD', KEYS[4], now, id)
  end
end
return reply
