-- Lets a latch count down from a number, unless it is counting down already.
--
-- KEYS[1]  latch          see shared/latch.lua
-- ARGV[1]  count
-- ARGV[2]  its_round      see shared/latch.lua
--
-- Returns  {'set'}        also when it was set with this round before
--          {'counting', count, remaining, round}
local latch = KEYS[1]
local count = ARGV[1]
local its_round = ARGV[2]

-- include shared/latch.lua

local counting, remaining, round = standing(latch)
if round == its_round then
  return {'set'}
end
if counting and remaining > 0 then
  return {'counting', counting, remaining, round}
end
redis.call('DEL', latch)
redis.call('HSET', latch, 'count', count, 'round', its_round)
redis.call('PEXPIRE', latch, LATCH_KEPT_MS)
return {'set'}
