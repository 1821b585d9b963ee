-- Gives the mutex back, if the token holds it.
--
-- KEYS[1]  mutex          see mutex_acquire.lua
-- ARGV[1]  token
-- ARGV[2]  kept_ms        see mutex_acquire.lua
--
-- Returns  {'released'}   also when the token released it before and nobody has taken it since
--          {'not-held'}
local mutex = KEYS[1]
local token = ARGV[1]
local kept_ms = ARGV[2]

local value = redis.call('GET', mutex)
if not value or string.sub(value, 3, 34) ~= token then
  return {'not-held'}
end
if string.byte(value) == 114 then
  return {'released'}
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if tonumber(string.sub(value, 53)) <= now_us then
  return {'not-held'}
end
redis.call('SET', mutex, 'r' .. string.sub(value, 2), 'PX', kept_ms)
return {'released'}
