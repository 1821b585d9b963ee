-- Takes grants back, each in turn.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each campaign the campaign, then of each its members, then of each what is due: see
--                         shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved: empty
-- ARGV[3]  campaigns      how many campaigns there are
-- ARGV[..] arguments      how the journal calls each campaign; then per wish: which campaign, user, seq
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines, one per wish
--          revoked remaining
--          not-granted, unknown, recovering
--          or, for a late copy: late
local keys = KEYS
local arguments = ARGV
local journal = KEYS[1]
local sending = KEYS[2]
local number = tonumber(ARGV[1])
local passes = ARGV[2]
local campaigns = tonumber(ARGV[3])
-- include the stock's rules
-- include shared/batch.lua

-- How much the user's grant of that number is, after it was taken from the user; or nil.
local function take_from(shelf, user, seq)
  if shelf.is_coupon then
    local is_granted = redis.call('HGET', shelf.members, 'u' .. user) == seq
    return is_granted and redis.call('HDEL', shelf.members, 'u' .. user) or nil
  end
  local its_quantity, its_user = string.match(redis.call('HGET', shelf.members, 's' .. seq) or '', '^(%d+):(.*)$')
  if its_user ~= user then
    return nil
  end
  local granted, held = share_of(shelf, user)
  set_share(shelf, user, granted - its_quantity, held)
  redis.call('HDEL', shelf.members, 's' .. seq)
  return tonumber(its_quantity)
end

local function revoke(shelf, user, seq)
  local quantity = take_from(shelf, user, seq)
  if not quantity then
    return 'not-granted'
  end
  shelf.granted = shelf.granted - quantity
  record(shelf, 'revoked', 'seq', seq, 'user', user, 'quantity', text(quantity))
  return 'revoked ' .. text(remaining(shelf))
end

local answers = {}
for place = at, wishes_end, 3 do
  local shelf = shelves[tonumber(arguments[place])]
  answers[#answers + 1] = shelf and revoke(shelf, arguments[place + 1], arguments[place + 2]) or denied[tonumber(arguments[place])]
end
return finish(answers)
