-- lease moves up to n tasks from the queue into the caller's in-flight hash and answers them.
--
-- KEYS  1 src  2 landing  3 body  4 meta  5 crashes  6 worker  7 delayed  8 dead  9 ticks  10 holder  11 paused  12 rate
-- ARGV  1 dispatcher id    2 n, 1..1000    3 d, how many of them may be parked ones while fresh ones wait
--       4 max bytes        5 base, 13 characters, fresh for every call: the token of these leases and part of new ids
--       6 '1' = ordered    7 rate limit, '' = none    8 per, ms    9 burst    10 '1' = fresh ones first: callers take
--       turns, so that neither side starves where order, tokens or max bytes let less than n through
-- Reply {code, now ms, wait ms, id, payload, meta, crashes, id, ...}
--       FENCED   the caller is condemned or unknown       LAPSED  its tick has run out: beat first
--       PAUSED   nothing is leased from this queue        REPLAY  the base was used before, in this ms
--       BUSY     ordered: the one task is out             LIMITED no token left in the bucket
--       EMPTY    nothing is due                           LEASED  the tasks follow
--       wait: until the next parked task is due or the next token is there; -1 = unknown
--       crashes: sweeps since the last attempt ended; -1 = the body is missing, the task went to the dead letters
-- Keeps: each task is in src, landing, delayed or dead before, or in this worker hash after, and never in two.
local types = {'list', 'list', 'hash', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'string', 'string', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local n, d, max_bytes, base = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local ordered = ARGV[6] == '1'

local tick = tonumber(redis.call('ZSCORE', KEYS[9], ARGV[1]) or -1)
if tick == -1 then return {'FENCED', now, -1} end
if tick < now then return {'LAPSED', now, -1} end
if redis.call('EXISTS', KEYS[11]) == 1 then return {'PAUSED', now, -1} end

-- New ids are ULIDs: 10 characters of time, 13 of the base, 3 of the index within this call.
local digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
local function crockford(number, width)
  local text = ''
  for _ = 1, width do
    local digit = number % 32
    text = string.sub(digits, digit + 1, digit + 1) .. text
    number = (number - digit) / 32
  end
  return text
end
local stem = crockford(now, 10) .. base
if redis.call('HEXISTS', KEYS[3], stem .. crockford(0, 3)) == 1 then return {'REPLAY', now, -1} end

local tokens
if ARGV[7] ~= '' then
  local limit, per, burst = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
  local bucket = redis.call('HMGET', KEYS[12], 'tokens', 'at')
  local since = math.max(0, now - (tonumber(bucket[2]) or now))
  tokens = math.min(burst, (tonumber(bucket[1]) or burst) + since * limit / per)
  if tokens < 1 then
    if tonumber(bucket[2]) and tonumber(bucket[2]) > now then -- the clock went back: refill from here on
      redis.call('HDEL', KEYS[6], '') -- a first write that a full Redis allows
      redis.call('HSET', KEYS[12], 'at', now)
    end
    return {'LIMITED', now, math.ceil((1 - tokens) * per / limit)}
  end
  n = math.min(n, math.floor(tokens))
end

local due = redis.call('ZRANGEBYSCORE', KEYS[7], '-inf', '(' .. now + 1, 'LIMIT', 0, n) -- all of this ms
local fresh_first = ARGV[10] == '1'
if ordered then n = 1 end
d = math.min(d, fresh_first and math.floor(n / 2) or math.ceil(n / 2))
if ordered then
  local held = redis.call('GET', KEYS[10])
  if held and redis.call('HEXISTS', KEYS[3], held) == 1 then
    local at = redis.call('ZSCORE', KEYS[7], held)
    if not at then return {'BUSY', now, -1} end
    if tonumber(at) > now then return {'BUSY', now, math.ceil(at - now)} end
    due, d = {held}, 1
  end
end

redis.call('HDEL', KEYS[6], '') -- a first write that a full Redis allows, so that it allows the next ones

local reply, taken, bytes, minted, parked = {'LEASED', now, -1}, 0, 0, 0, 0
local function answer(id, payload, meta, crashes)
  reply[#reply + 1] = id
  reply[#reply + 1] = payload
  reply[#reply + 1] = meta or ''
  reply[#reply + 1] = tonumber(crashes or 0)
end
local function full() return taken == n or (taken > 0 and bytes >= max_bytes) end
local function lease(id, payload, meta, crashes)
  redis.call('HSET', KEYS[6], id, base)
  if ordered then redis.call('SET', KEYS[10], id) end
  taken = taken + 1
  bytes = bytes + #payload
  answer(id, payload, meta, crashes)
end
local function lease_parked(limit)
  while parked < limit and not full() do
    parked = parked + 1
    local id = due[parked]
    local payload = redis.call('HGET', KEYS[3], id)
    redis.call('ZREM', KEYS[7], id)
    if payload then
      lease(id, payload, redis.call('HGET', KEYS[4], id), redis.call('HGET', KEYS[5], id))
    else
      redis.call('ZADD', KEYS[8], now, id)
      answer(id, '', '', -1)
    end
  end
end
local function lease_fresh(limit)
  while minted < limit and not full() do
    local payload = redis.call('RPOP', KEYS[2]) or redis.call('RPOP', KEYS[1])
    if not payload then return end
    local id = stem .. crockford(minted, 3)
    minted = minted + 1
    redis.call('HSET', KEYS[3], id, payload)
    lease(id, payload)
  end
end

if fresh_first then lease_fresh(n - d) end
lease_parked(math.min(d, #due))
lease_fresh(n)
lease_parked(#due)

if tokens then
  redis.call('HSET', KEYS[12], 'tokens', tokens - taken, 'at', now)
end
if taken == 0 then
  reply[1] = 'EMPTY'
  local head = redis.call('ZRANGE', KEYS[7], 0, 0, 'WITHSCORES')
  if head[2] then reply[3] = math.max(0, math.floor(head[2]) - now) end
end
return reply
