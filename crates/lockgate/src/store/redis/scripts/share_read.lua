-- Tells what a user has of the campaign. Does what is due first.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- ARGV[1]  named          how the journal calls the campaign
-- ARGV[2]  user
-- ARGV[3]  run            see shared/epoch.lua
--
-- Returns  one line
--          unknown, recovering
--          share granted held seq             seq 0 unless it is a coupon that is issued
local keys = KEYS
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local named = ARGV[1]
local user = ARGV[2]
local run = ARGV[3]
-- include the stock's rules
-- include shared/reading.lua
if denied then
  return denied
end
sweep(shelf)

if not shelf.is_coupon then
  local granted, held = share_of(shelf, user)
  return 'share ' .. text(granted) .. ' ' .. text(held) .. ' 0'
end
local seat = redis.call('HGET', members, 'u' .. user)
if not seat then
  return 'share 0 0 0'
elseif string.sub(seat, 1, 1) == 'h' then
  return 'share 0 1 0'
end
return 'share 1 0 ' .. seat
