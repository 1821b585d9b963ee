-- Tells how the coupon stands.
--
-- KEYS[1]  coupon         see coupon_open.lua
--
-- Returns  {'unknown'}
--          {'known', quantity, issued, opens_at_us, closes_at_us, now_us}
local coupon = KEYS[1]

local terms = redis.call('HMGET', coupon, 'quantity', 'issued', 'opens_at_us', 'closes_at_us')
if not terms[1] then
  return {'unknown'}
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
return {'known', tonumber(terms[1]), tonumber(terms[2]), tonumber(terms[3]), tonumber(terms[4]), now_us}
