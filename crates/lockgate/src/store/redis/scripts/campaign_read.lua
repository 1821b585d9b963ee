-- Tells how the campaign stands. Does what is due first.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- ARGV[1]  named          how the journal calls the campaign
-- ARGV[2]  run            see shared/epoch.lua
--
-- Returns  one line
--          unknown, recovering
--          known .., suspect ..                followed by what shared/standing.lua says
local keys = KEYS
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local named = ARGV[1]
local run = ARGV[2]
-- include the stock's rules
-- include shared/reading.lua
-- include shared/standing.lua

if not shelf then
  return denied
elseif denied then
  return 'suspect ' .. standing(shelf)
end
sweep(shelf)
return 'known ' .. standing(shelf)
