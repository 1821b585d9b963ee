-- Forgets a campaign that is over, if nothing has happened to it since. Does what is due first.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- KEYS[7]  campaigns_list see campaign_list.lua
-- ARGV[1]  named          how the journal calls the campaign
-- ARGV[2]  rev            the number of the last change that is known
-- ARGV[3]  run            see shared/epoch.lua
--
-- Returns  one line
--          unknown, recovering
--          forgotten, not-over, changed rev
local keys = KEYS
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local campaigns_list = KEYS[7]
local named = ARGV[1]
local rev = tonumber(ARGV[2])
local run = ARGV[3]
-- include the stock's rules
-- include shared/reading.lua
local marked = tonumber(redis.call('HGET', marks, named) or 0)
local is_known = denied and marked <= rev and (not shelf or shelf.rev <= rev)
if denied and not is_known then
  return denied
end
if not denied then
  sweep(shelf)
end
-- Of what cannot be trusted, whoever asks knows at least as much as anybody has seen, and that it was over.
if not denied and (state_of(shelf) ~= 'closed' or shelf.held > 0) then
  return 'not-over'
elseif not denied and shelf.rev ~= rev then
  return 'changed ' .. text(shelf.rev)
end
-- Not at once: it may be millions of members.
redis.call('UNLINK', campaign, members, due)
redis.call('ZREM', campaigns_list, named)
redis.call('HDEL', marks, named)
return 'forgotten'
