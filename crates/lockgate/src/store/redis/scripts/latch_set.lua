-- Lets a latch count down from a number, unless it is counting down already.
--
-- KEYS[1]  latch          see shared/latch.lua
-- ARGV[1]  count
--
-- Returns  {'set'}
--          {'counting', count, remaining}
local latch = KEYS[1]
local count = ARGV[1]

-- include shared/latch.lua

local counting, remaining = standing(latch)
if counting and remaining > 0 then
  return {'counting', counting, remaining}
end
redis.call('DEL', latch)
redis.call('HSET', latch, 'count', count)
redis.call('PEXPIRE', latch, LATCH_KEPT_MS)
return {'set'}
