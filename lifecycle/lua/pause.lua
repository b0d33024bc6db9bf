-- pause stops the leasing of a queue's tasks.
--
-- KEYS  1 paused
-- ARGV  none
-- Reply 1 = from now on, 0 = it was paused already
-- Keeps: whatever stands in the key already, since its presence is all that counts.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[1]) -- a first write that a full Redis allows, so that it allows the next one
redis.call('SET', KEYS[1], '1')
return 1
