-- Takes a user's name off what the user was granted. It stays granted, to somebody without a name.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- ARGV[1]  named          how the journal calls the campaign
-- ARGV[2]  user
-- ARGV[3]  alias          whose it is from now on
-- ARGV[..] arguments      the numbers of the grants, and last the run, see shared/epoch.lua
--
-- Returns  one line
--          unknown, recovering
--          erased                              also when there was nothing
--          held                                nothing has changed
local keys = KEYS
local arguments = ARGV
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local named = ARGV[1]
local user = ARGV[2]
local alias = ARGV[3]
local run = arguments[#arguments]
-- include the stock's rules
-- include shared/reading.lua
if denied then
  return denied
end
sweep(shelf)

local share = redis.call('HGET', members, 'u' .. user)
if share and (shelf.is_coupon and string.sub(share, 1, 1) == 'h' or not shelf.is_coupon and not string.find(share, ':0$')) then
  return 'held'
end
if share then
  redis.call('HDEL', members, 'u' .. user)
  redis.call('HSET', members, 'u' .. alias, share)
end
-- Also when the share has gone to the alias before: there may be more numbers than one call takes.
for place = 4, shelf.is_coupon and 0 or #arguments - 1 do
  local grant_of = redis.call('HGET', members, 's' .. arguments[place])
  local quantity, its_user = string.match(grant_of or '', '^(%d+):(.*)$')
  if its_user == user then
    redis.call('HSET', members, 's' .. arguments[place], quantity .. ':' .. alias)
  end
end
return 'erased'
