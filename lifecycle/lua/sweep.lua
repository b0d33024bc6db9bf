-- sweep looks at a dispatcher that may be dead and, when it has been for the whole grace, takes its tasks back.
--
-- KEYS  1 ticks  2 info  3 suspects  4 worker  5 crashes  6 delayed  7 dead  8 holder  9 hook  10 stats
-- ARGV  1 dispatcher id      2 grace, ms (its own, from its info, counts when it is longer)
--       3 batch, 0..100: how many tasks to take; 0 = look only
--       4 crash limit, 0 = none    5 hook token, '' = no hooks run    6 hook time to live, ms
-- Reply {code, a, b, c}
--       GONE     no such dispatcher                     ALIVE    its tick has not run out
--       MARKED   suspected from now on; a = wait, ms    WAITING  suspected; a = wait, ms
--       HELD     another sweeper's hooks run            READY    dead; nothing was taken, as asked
--       SWEPT    a = given back, b = buried, c = left; when none is left the id is forgotten, but while hooks run only
--                by a call that took nothing, so that a crash before OnPostConcat is seen by the next sweeper
-- Keeps: a living dispatcher loses nothing, since looks stop while Redis is away and a beat outdates the mark. From the
--        first take on it is condemned: tick -1, which fences its beat, lease and register; it may still settle what was
--        not taken yet. Each task moves from the in-flight hash to delayed or dead in one step.
local types = {'zset', 'hash', 'hash', 'hash', 'hash', 'zset', 'zset', 'string', 'string', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local id, grace, batch, crash_limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local token = ARGV[5]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local tick = tonumber(redis.call('ZSCORE', KEYS[1], id) or nil)
if not tick then return {'GONE', 0, 0, 0} end

if tick ~= -1 then
  local ttl = 0
  local ok, info = pcall(cjson.decode, redis.call('HGET', KEYS[2], id) or '{}')
  if ok and type(info) == 'table' then
    grace = math.max(grace, tonumber(info.grace_ms) or 0)
    ttl = tonumber(info.ttl_ms) or 0
  end
  local since, looked = string.match(redis.call('HGET', KEYS[3], id) or '', '^(%d+):(%d+)$')
  since, looked = tonumber(since), tonumber(looked)

  local absurd = now + math.max(10 * ttl, 300000)
  if tick >= now and tick <= absurd then
    if since then redis.call('HDEL', KEYS[3], id) end
    return {'ALIVE', 0, 0, 0}
  end
  local outdated = since and ((since < tick and tick < now) or since > now or now - looked > 2 * grace)
  redis.call('ZREM', KEYS[1], '') -- a first write that a full Redis allows, so that it allows the next ones
  if not since or outdated then
    redis.call('HSET', KEYS[3], id, string.format('%d:%d', now, now))
    return {'MARKED', grace, 0, 0}
  end
  redis.call('HSET', KEYS[3], id, string.format('%d:%d', since, now))
  if now - since < grace then return {'WAITING', grace - (now - since), 0, 0} end
else
  redis.call('ZREM', KEYS[1], '')
end

if token ~= '' then
  local owner = redis.call('GET', KEYS[9])
  if owner and owner ~= token then return {'HELD', 0, 0, 0} end
  redis.call('SET', KEYS[9], token, 'PX', ARGV[6])
end
if batch == 0 then return {'READY', 0, 0, 0} end

redis.call('ZADD', KEYS[1], -1, id)
local back, buried = 0, 0
for _, task in ipairs(redis.call('HRANDFIELD', KEYS[4], batch)) do
  local crashes = redis.call('HINCRBY', KEYS[5], task, 1)
  redis.call('HDEL', KEYS[4], task)
  if crash_limit > 0 and crashes >= crash_limit then
    redis.call('ZADD', KEYS[7], now, task)
    if redis.call('GET', KEYS[8]) == task then redis.call('DEL', KEYS[8]) end
    buried = buried + 1
  else
    local due = 0
    if crashes > 1 then
      local draw = tonumber(string.sub(redis.sha1hex(task), 1, 8), 16) / 4294967296
      due = now + math.floor(math.min(60000, 1000 * 2 ^ math.min(crashes, 6)) * (0.5 + draw))
    end
    redis.call('ZADD', KEYS[6], due, task)
    back = back + 1
  end
end
if back > 0 then redis.call('HINCRBY', KEYS[10], 'recovered', back) end
if buried > 0 then redis.call('HINCRBY', KEYS[10], 'buried', buried) end

local left = redis.call('HLEN', KEYS[4])
if left == 0 and (token == '' or back + buried == 0) then
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
end
return {'SWEPT', back, buried, left}
