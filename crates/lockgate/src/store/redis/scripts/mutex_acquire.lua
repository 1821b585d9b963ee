-- Gives the mutex to a token when nobody holds it and nobody waits for it; otherwise does what if_taken says.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- KEYS[3]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token          32 hexadecimal digits, new for every attempt; the first 16 are the ear of its process
-- ARGV[2]  lease_ms
-- ARGV[3]  fences         how many to reserve
-- ARGV[4]  fence_seen     the highest fence that the caller knows of, or 0
-- ARGV[5]  if_taken       leave; watch; queue; again: it is or was in the queue
-- ARGV[6]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'granted', first_fence, last_fence, lease_left_us}   also when the token held it before: a re-sent call
--                                                                changes nothing
--          {'taken', lease_left_us}   0 left: by the token itself, which has released it; the call is late
--          {'queued', ahead, lease_left_us, now_us}
local mutex = KEYS[1]
local queue = KEYS[2]
local quarantine = KEYS[3]
local token = ARGV[1]
local lease_ms = ARGV[2]
local fences = ARGV[3]
local fence_seen = tonumber(ARGV[4])
local if_taken = ARGV[5]
local run = ARGV[6]

-- include shared/quarantine.lua
-- The common case, before anything is made that only the others need. Where there is a quarantine, a released mutex may
-- have a queue.
local value = redis.call('GET', mutex)
if value and string.byte(value) == 114 and not quarantine_us then
  local released_by = string.sub(value, 2, 33)
  if released_by ~= token and string.sub(value, 34, 65) ~= token then
    local time = redis.call('TIME')
    local first = math.max(time[1] * 1000000 + time[2], string.sub(value, 66) + 1, fence_seen + 1)
    local last = first + fences - 1
    local state = if_taken == 'watch' and 'w' or 'h'
    redis.call('SET', mutex, state .. token .. released_by .. string.format('%.0f', last), 'PX', lease_ms)
    return {'granted', first, last, lease_ms * 1000}
  end
end

-- include the house's rules
-- include shared/hand_over.lua
-- include shared/take.lua

return take(value, mutex, queue, token, lease_ms, fences, fence_seen, if_taken)
