-- Tells the parts of orders that may be doubted, the oldest first.
--
-- KEYS[1]  doubts         see order_reserve.lua
-- ARGV[1]  limit          how many at the most
--
-- Returns  the parts
local doubts = KEYS[1]
local limit = ARGV[1]

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
return redis.call('ZRANGEBYSCORE', doubts, '-inf', now_us, 'LIMIT', 0, limit)
