-- Lets the lease of the mutex begin anew, if the token still holds it. A lease that ran out stays lost.
--
-- KEYS[1]  mutex          see mutex_acquire.lua
-- ARGV[1]  token
-- ARGV[2]  lease_ms
-- ARGV[3]  kept_ms        see mutex_acquire.lua
--
-- Returns  {'renewed'}
--          {'not-held'}
local mutex = KEYS[1]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])
local kept_ms = tonumber(ARGV[3])

local value = redis.call('GET', mutex)
if not value or string.sub(value, 1, 34) ~= 'h:' .. token then
  return {'not-held'}
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if tonumber(string.sub(value, 53)) <= now_us then
  return {'not-held'}
end
local held_until_here = string.sub(value, 1, 52)
redis.call('SET', mutex, held_until_here .. string.format('%016.0f', now_us + lease_ms * 1000), 'PX', lease_ms + kept_ms)
return {'renewed'}
