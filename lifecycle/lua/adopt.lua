-- adopt answers the caller's own in-flight tasks that it does not know: those of a lease whose reply was lost.
--
-- KEYS  1 ticks  2 worker  3 body  4 meta  5 crashes  6 dead
-- ARGV  1 dispatcher id  2 n, 1..1000  3 max bytes  4 fresh lease token  5... ids that the caller knows
-- Reply {code, now ms, -1, id, payload, meta, crashes, id, ...}: LEASED, EMPTY or FENCED, as lease answers
-- Keeps: the tasks stay in this worker hash, under the new token, so that a settlement with the lost one is refused.
local types = {'zset', 'hash', 'hash', 'hash', 'hash', 'zset'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or -1) == -1 then return {'FENCED', now, -1} end

local known = {}
for i = 5, #ARGV do known[ARGV[i]] = true end
local n, max_bytes = tonumber(ARGV[2]), tonumber(ARGV[3])
local unknown = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  if not known[id] then unknown[#unknown + 1] = id end
end
table.sort(unknown)

redis.call('HDEL', KEYS[2], '') -- a first write that a full Redis allows, so that it allows the next ones

local reply, bytes, taken = {'LEASED', now, -1}, 0, 0
for _, id in ipairs(unknown) do
  if taken == n or (taken > 0 and bytes >= max_bytes) then break end
  local payload = redis.call('HGET', KEYS[3], id)
  local crashes = -1
  if payload then
    redis.call('HSET', KEYS[2], id, ARGV[4])
    bytes = bytes + #payload
    taken = taken + 1
    crashes = tonumber(redis.call('HGET', KEYS[5], id) or 0)
  else
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZADD', KEYS[6], now, id)
  end
  reply[#reply + 1] = id
  reply[#reply + 1] = payload or ''
  reply[#reply + 1] = redis.call('HGET', KEYS[4], id) or ''
  reply[#reply + 1] = crashes
end
if taken == 0 then reply[1] = 'EMPTY' end
return reply
