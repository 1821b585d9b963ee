-- Gives the mutex to a token when nobody holds it.
--
-- KEYS[1]  mutex          string '<h|r>:<token>:<fence>:<deadline_us>', numbers with 16 digits; h = held by the token
--                         until the deadline, r = released by the token. Outlives its lease by kept_ms.
-- ARGV[1]  token          32 hexadecimal digits, new for every attempt
-- ARGV[2]  lease_ms
-- ARGV[3]  fence_seen     the highest fence that the caller knows of, or 0
-- ARGV[4]  kept_ms        how long the mutex is remembered after its lease
--
-- Returns  {'granted', fence, lease_left_us}   also when the token held it before: a re-sent call changes nothing
--          {'taken', lease_left_us}            0 left: by the token itself, which has released it; the call is late
local mutex = KEYS[1]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])
local fence_seen = tonumber(ARGV[3])
local kept_ms = tonumber(ARGV[4])

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local fence = math.max(fence_seen + 1, now_us)

local value = redis.call('GET', mutex)
if value then
  local held_fence = tonumber(string.sub(value, 36, 51))
  local lease_left_us = tonumber(string.sub(value, 53)) - now_us
  if string.byte(value) == 104 and lease_left_us > 0 then
    if string.sub(value, 3, 34) == token then
      return {'granted', held_fence, lease_left_us}
    end
    return {'taken', lease_left_us}
  end
  if string.byte(value) == 114 and string.sub(value, 3, 34) == token then
    return {'taken', 0}
  end
  fence = math.max(fence, held_fence + 1)
end

local deadline_us = now_us + lease_ms * 1000
redis.call('SET', mutex, string.format('h:%s:%016.0f:%016.0f', token, fence, deadline_us), 'PX', lease_ms + kept_ms)
return {'granted', fence, lease_ms * 1000}
