-- Tells what was committed over several partitions.
--
-- KEYS[1]  record         see order_decide.lua
--
-- Returns  unknown
--          committed                           then a line feed and what the record holds
local record = KEYS[1]

local known = redis.call('GET', record)
if not known then
  return 'unknown'
end
return 'committed' .. '\n' .. known
