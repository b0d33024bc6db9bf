-- enqueue parks a new task until it is due.
--
-- KEYS  1 body  2 meta  3 delayed  4 dedup
-- ARGV  1 task id  2 payload  3 metadata  4 delay, ms  5 dedup time to live, ms; 0 = no deduplication
-- Reply {code, id}
--       ADDED    the task is new                       EXISTS  the id is known
--       DEDUPED  the dedup key names the task id       FULL    Redis is over maxmemory; nothing was written
-- Keeps: body, metadata, index entry and dedup key come together or not at all.
local types = {'hash', 'hash', 'zset', 'string'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local id, ttl = ARGV[1], tonumber(ARGV[5])
if ttl > 0 then
  local other = redis.call('GET', KEYS[4])
  if other then return {'DEDUPED', other} end
end
if redis.call('HEXISTS', KEYS[1], id) == 1 then return {'EXISTS', id} end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000 -- to the microsecond: what is enqueued within one ms keeps its order too

local stored = redis.pcall('HSET', KEYS[1], id, ARGV[2])
if type(stored) == 'table' and stored.err then
  if string.find(stored.err, 'OOM', 1, true) then return {'FULL', id} end
  return stored
end
redis.call('HSET', KEYS[2], id, ARGV[3])
redis.call('ZADD', KEYS[3], now + ARGV[4], id)
if ttl > 0 then redis.call('SET', KEYS[4], id, 'PX', ttl) end
return {'ADDED', id}
