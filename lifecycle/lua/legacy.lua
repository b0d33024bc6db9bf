-- legacy moves the tasks of a dead redutil worker back to the head of their queue, the oldest to come out first.
--
-- KEYS  1 src  2 redutil's worker LIST, the newest at its left end  3 redutil's ticks HASH: worker id -> time
-- ARGV  1 worker id  2 its tick as it was seen a grace ago  3 batch, 1..100
-- Reply {moved, left}; {-1, left} = its tick has changed: it lives
-- Keeps: each payload moves in one step; a worker without tasks is forgotten.
local types = {'list', 'list', 'hash'}
for i, want in ipairs(types) do
  local got = redis.call('TYPE', KEYS[i]).ok
  if got ~= want and got ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', a ' .. want .. ' was expected')
  end
end

local left = redis.call('LLEN', KEYS[2])
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return {-1, left} end

redis.call('HDEL', KEYS[3], '') -- a first write that a full Redis allows, so that it allows the next ones
local moved = math.min(left, tonumber(ARGV[3]))
for _ = 1, moved do redis.call('LMOVE', KEYS[2], KEYS[1], 'LEFT', 'RIGHT') end
if moved == left then redis.call('HDEL', KEYS[3], ARGV[1]) end
return {moved, left - moved}
