-- Raises the fence of a mutex, if the token holds it, so that later grants have higher ones. Its lease stays as it is.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- ARGV[1]  token
-- ARGV[2]  fence
--
-- Returns  {'raised'}     also when it was as high before
--          {'not-held'}
local mutex = KEYS[1]
local token = ARGV[1]
local fence = tonumber(ARGV[2])

-- include the house's rules
-- include shared/hand_over.lua

local value = redis.call('GET', mutex)
if not value or string.byte(value) == RELEASED or string.sub(value, 2, 33) ~= token then
  return {'not-held'}
end
if fence > tonumber(string.sub(value, 66)) then
  redis.call('SET', mutex, string.sub(value, 1, 65) .. string.format('%.0f', fence), 'KEEPTTL')
end
return {'raised'}
