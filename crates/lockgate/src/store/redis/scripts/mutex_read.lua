-- Tells how the mutex stands.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- ARGV[1]  listed         how many waiters to list at the most
--
-- Returns  {'held', fence, lease_left_us, waiting, token, waiter …}
--          {'free', fence, waiting, waiter …}
local mutex = KEYS[1]
local queue = KEYS[2]
local listed = ARGV[1]

-- include the house's rules
-- include shared/hand_over.lua

local value = redis.call('GET', mutex)
local waiting = redis.call('LLEN', queue)
local answer = {'free', 0, waiting}
if value then
  local fence = tonumber(string.sub(value, 66))
  answer = {'free', fence, waiting}
  if string.byte(value) ~= RELEASED then
    answer = {'held', fence, math.max(redis.call('PTTL', mutex), 0) * 1000, waiting, string.sub(value, 2, 33)}
  end
end
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, listed - 1)) do
  answer[#answer + 1] = waiter
end
return answer
