-- Tells how the campaign stands. Does what is due first.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- ARGV[1]  named          how the journal calls the campaign
--
-- Returns  unknown
--          known ..                            followed by what shared/standing.lua says
local keys = KEYS
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local named = ARGV[1]
-- include the stock's rules
local campaigns = 1
local packing = '>dddddddddB'
-- include shared/shelf.lua
-- include shared/holds.lua
-- include shared/standing.lua

local shelf = shelf_of(redis.call('GET', campaign), 2, named)
if not shelf then
  return 'unknown'
end
sweep(shelf)
return 'known ' .. standing(shelf)
