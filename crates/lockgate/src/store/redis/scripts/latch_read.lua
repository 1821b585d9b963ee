-- Tells how a latch stands.
--
-- KEYS[1]  latch          see shared/latch.lua
--
-- Returns  {'latch', count, remaining, round}
--          {'unknown'}
local latch = KEYS[1]

-- include shared/latch.lua

local count, remaining, round = standing(latch)
if not count then
  return {'unknown'}
end
return {'latch', count, remaining, round}
