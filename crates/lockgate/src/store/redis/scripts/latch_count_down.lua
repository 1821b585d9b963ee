-- Counts a latch down by one, once for each token, if it is still in that round. At zero all hear of it.
--
-- KEYS[1]  latch          see shared/latch.lua
-- ARGV[1]  token          who is counted
-- ARGV[2]  its_round      see shared/latch.lua
--
-- Returns  {'latch', count, remaining, round}
--          {'unknown'}
local latch = KEYS[1]
local token = ARGV[1]
local its_round = ARGV[2]

-- include the house's rules
-- include shared/latch.lua

local count, remaining, round = standing(latch)
if not count then
  return {'unknown'}
end
if its_round == round and remaining > 0 and redis.call('HSETNX', latch, token, '') == 1 then
  remaining = remaining - 1
  redis.call('PEXPIRE', latch, LATCH_KEPT_MS)
  if remaining == 0 then
    redis.call('PUBLISH', freed, latch)
  end
end
return {'latch', count, remaining, round}
