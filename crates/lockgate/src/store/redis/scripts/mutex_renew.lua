-- Lets the leases of several mutexes begin anew, each if its token still holds it. A lease that ran out stays lost.
--
-- KEYS[..] mutexes        see shared/hand_over.lua; all of one partition
-- ARGV[..] renewals       three for each mutex: token, lease_ms, fences (how many more to reserve, or 0)
--
-- Returns  {'renewed', …}  two for each mutex: its highest fence, or 0 if it is not held by the token; and whether
--                          somebody waits (1 or 0)
local mutexes = KEYS
local renewals = ARGV

-- include the house's rules
-- include shared/hand_over.lua

local answer = {'renewed'}
for i, mutex in ipairs(mutexes) do
  local token, lease_ms, fences = renewals[3 * i - 2], renewals[3 * i - 1], tonumber(renewals[3 * i])
  local value = redis.call('GET', mutex)
  local fence, others_wait = 0, 0
  if value and string.sub(value, 2, 33) == token and string.byte(value) ~= RELEASED then
    local state = string.byte(value)
    fence = tonumber(string.sub(value, 66))
    if fences == 0 then
      redis.call('PEXPIRE', mutex, lease_ms)
    else
      fence = math.max(fence + 1, now_us()) + fences - 1
      redis.call('SET', mutex, string.sub(value, 1, 65) .. string.format('%.0f', fence), 'PX', lease_ms)
    end
    if state ~= HELD then
      others_wait = 1
    end
  end
  answer[2 * i] = fence
  answer[2 * i + 1] = others_wait
end
return answer
