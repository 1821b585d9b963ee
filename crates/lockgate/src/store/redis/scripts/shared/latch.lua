-- How a latch is kept. Shared by the latch scripts.
--
-- A latch is a hash: count -> from which number it counts down; and each token that was counted. It is kept for a day after the
-- last change.
local LATCH_KEPT_MS = 86400000

-- From which number the latch counts down, and how many are missing; nil: there is none.
local function standing(latch)
  local count = tonumber(redis.call('HGET', latch, 'count'))
  if count then
    return count, count + 1 - redis.call('HLEN', latch)
  end
end
