-- How a latch is kept. Shared by the latch scripts.
--
-- A latch is a hash: count -> from which number it counts down; round -> the token with which it was set; and each token that
-- was counted. It is kept for a day after the last change.
local LATCH_KEPT_MS = 86400000

-- From which number the latch counts down, how many are missing, and which round it is; nil: there is none.
local function standing(latch)
  local known = redis.call('HMGET', latch, 'count', 'round')
  if known[1] then
    local count = tonumber(known[1])
    return count, count + 2 - redis.call('HLEN', latch), known[2]
  end
end
