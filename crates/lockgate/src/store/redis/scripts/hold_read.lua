-- Tells how a hold stands. Does what is due first.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- ARGV[1]  named          how the journal calls the campaign
-- ARGV[2]  id             of the hold
-- ARGV[3]  run            see shared/epoch.lua
--
-- Returns  one line
--          unknown, recovering
--          hold state quantity expires_at_us seq    then a line feed and the user
local keys = KEYS
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local named = ARGV[1]
local id = ARGV[2]
local run = ARGV[3]
-- include the stock's rules
-- include shared/reading.lua
if denied then
  return denied
end
sweep(shelf)

local hold = give_back(shelf, id)
if shelf.is_changed then
  save(shelf)
end
if not hold then
  return 'unknown'
end
return table.concat({'hold', hold.state, text(hold.quantity), hold.expires_at_us, hold.seq}, ' ') .. '\n' .. hold.user
