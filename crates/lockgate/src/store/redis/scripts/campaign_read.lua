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
-- include shared/reading.lua
-- include shared/standing.lua

return 'known ' .. standing(shelf)
