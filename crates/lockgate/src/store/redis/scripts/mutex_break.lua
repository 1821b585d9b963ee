-- Takes the mutex from whoever holds it, and gives it to the first waiter who is there, or to nobody.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- KEYS[3]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'broken', fence}   above all that were given out before
local mutex = KEYS[1]
local queue = KEYS[2]
local quarantine = KEYS[3]
local run = ARGV[1]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/hand_over.lua
-- include shared/pass_on.lua

local value = redis.call('GET', mutex)
local state, released_by, before = QUEUED, NOBODY, NOBODY
local fence = now_us()
if value then
  state = string.byte(value)
  fence = math.max(fence, tonumber(string.sub(value, 66)) + 1)
  -- Who gave it back in good order is remembered; who it is taken from is not one of them.
  released_by = string.sub(value, 34, 65)
  if state == RELEASED then
    released_by, before = string.sub(value, 2, 33), released_by
  end
end
pass_on(mutex, queue, state, released_by, before, fence)
return {'broken', fence}
