-- Creates the coupon, or replaces its terms.
--
-- KEYS[1]  coupon         hash quantity, issued, opens_at_us, closes_at_us (0 = not given)
-- ARGV[1]  quantity
-- ARGV[2]  opens_at_us    or 0
-- ARGV[3]  closes_at_us   or 0
--
-- Returns  {'created', 0, now_us}
--          {'changed', issued, now_us}
--          {'below-issued', issued}   nothing has changed
local coupon = KEYS[1]
local quantity = ARGV[1]
local opens_at_us = ARGV[2]
local closes_at_us = ARGV[3]

local issued = tonumber(redis.call('HGET', coupon, 'issued') or -1)
if issued > tonumber(quantity) then
  return {'below-issued', issued}
end
redis.call('HSET', coupon, 'quantity', quantity, 'opens_at_us', opens_at_us, 'closes_at_us', closes_at_us)
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if issued < 0 then
  redis.call('HSET', coupon, 'issued', 0)
  return {'created', 0, now_us}
end
return {'changed', issued, now_us}
