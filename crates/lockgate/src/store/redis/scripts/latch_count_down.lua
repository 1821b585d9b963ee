-- Counts a latch down by one, once for each token. At zero all hear of it.
--
-- KEYS[1]  latch          see shared/latch.lua
-- ARGV[1]  token          who is counted
--
-- Returns  {'latch', count, remaining}
--          {'unknown'}
local latch = KEYS[1]
local token = ARGV[1]

-- include the house's rules
-- include shared/latch.lua

local count, remaining = standing(latch)
if not count then
  return {'unknown'}
end
if remaining > 0 and redis.call('HSETNX', latch, token, '') == 1 then
  remaining = remaining - 1
  redis.call('PEXPIRE', latch, LATCH_KEPT_MS)
  if remaining == 0 then
    redis.call('PUBLISH', freed, latch)
  end
end
return {'latch', count, remaining}
