-- Gives the mutex back and asks for it again in the same step, behind all who wait.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- KEYS[3]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token          who holds it
-- ARGV[2]  next_token     who asks
-- ARGV[3]  lease_ms
-- ARGV[4]  fences         see mutex_acquire.lua
-- ARGV[5]  fence_seen     see mutex_acquire.lua
-- ARGV[6]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'granted', first_fence, last_fence, lease_left_us}   nobody waits, or nobody who is there
--          {'taken', 0}                                          the call is late: next_token has released it already
--          {'queued', ahead, lease_left_us, now_us}
local mutex = KEYS[1]
local queue = KEYS[2]
local quarantine = KEYS[3]
local token = ARGV[1]
local next_token = ARGV[2]
local lease_ms = ARGV[3]
local fences = ARGV[4]
local fence_seen = tonumber(ARGV[5])
local run = ARGV[6]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/hand_over.lua

local value = redis.call('GET', mutex)
local state = value and string.byte(value)
if quarantined_us > 0 and value and state ~= RELEASED and string.sub(value, 2, 33) == token then
  -- Nobody is given it now, not even its holder under another name: it is given back, and asked for like any other.
  state, value = RELEASED, 'r' .. string.sub(value, 2)
  redis.call('SET', mutex, value, 'PX', kept_ms)
end
if value and state ~= RELEASED and string.sub(value, 2, 33) == token then
  local above = math.max(tonumber(string.sub(value, 66)), fence_seen)
  local now = now_us()
  if state ~= HELD then
    local waiting = redis.call('RPUSH', queue, next_token)
    local given_to = give_to_next(mutex, queue, string.char(state), token, above, now, next_token)
    if given_to ~= next_token then
      return {'queued', waiting - 2, claim_ms * 1000, now}
    end
    -- Nobody else is there.
  end
  local first = math.max(above + 1, now)
  local last = first + fences - 1
  local letter = state == WATCHED and 'w' or 'h'
  redis.call('SET', mutex, letter .. next_token .. token .. string.format('%.0f', last), 'PX', lease_ms)
  return {'granted', first, last, lease_ms * 1000}
end

-- include shared/take.lua

-- The token does not hold it (any more): an attempt like any other.
return take(value, mutex, queue, next_token, lease_ms, fences, fence_seen, 'queue')
