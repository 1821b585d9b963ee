-- Tells what was ordered.
--
-- KEYS[1]  order          its seqs, line feed, its content: see order_place.lua
--
-- Returns  unknown
--          order                               then a line feed and what the key holds
local order = KEYS[1]

local placed = redis.call('GET', order)
if not placed then
  return 'unknown'
end
return 'order' .. '\n' .. placed
