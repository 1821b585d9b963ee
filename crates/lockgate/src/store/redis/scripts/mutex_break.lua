-- Takes the mutex from whoever holds it, and gives it to the first waiter who is there, or to nobody.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- ARGV[1]  kept_ms        see mutex_release.lua
-- ARGV[2]  claim_ms       see mutex_acquire.lua
-- ARGV[3]  ears           see mutex_acquire.lua
-- ARGV[4]  skip           see mutex_acquire.lua
-- ARGV[5]  freed          see mutex_release.lua
--
-- Returns  {'broken', fence}   above all that were given out before
local mutex = KEYS[1]
local queue = KEYS[2]
local kept_ms = ARGV[1]
local claim_ms = ARGV[2]
local ears = ARGV[3]
local skip = ARGV[4]
local freed = ARGV[5]

-- include shared/hand_over.lua
-- include shared/pass_on.lua

local value = redis.call('GET', mutex)
local state = QUEUED
local fence = now_us()
if value then
  state = string.byte(value)
  fence = math.max(fence, tonumber(string.sub(value, 66)) + 1)
end
pass_on(mutex, queue, state, NOBODY, NOBODY, fence, kept_ms, claim_ms, ears, skip, freed)
return {'broken', fence}
