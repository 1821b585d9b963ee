-- Confirms or cancels holds, each in turn.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each campaign the campaign, then of each its members, then of each what is due: see
--                         shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved: empty
-- ARGV[3]  campaigns      how many campaigns there are
-- ARGV[..] arguments      how the journal calls each campaign; then per wish: which campaign, hold, user, confirm or cancel
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines, one per wish
--          confirmed seq, cancelled            also when it was so before
--          was-confirmed seq, was-cancelled    it was settled the other way
--          expired, unknown, recovering
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
-- include shared/settling.lua

local function settle_as_wished(shelf, id, user, wish)
  local hold = give_back(shelf, id)
  if not hold or hold.user ~= user then
    return 'unknown'
  elseif hold.state == 'held' and wish == 'confirm' then
    return 'confirmed ' .. confirm(shelf, id, hold)
  elseif hold.state == 'held' then
    cancel(shelf, id, hold)
    return 'cancelled'
  elseif hold.state == 'confirmed' then
    return (wish == 'confirm' and 'confirmed ' or 'was-confirmed ') .. hold.seq
  elseif hold.state == 'cancelled' then
    return wish == 'cancel' and 'cancelled' or 'was-cancelled'
  end
  return 'expired'
end

local answers = {}
for place = at, wishes_end, 4 do
  local shelf, id, user = shelves[tonumber(arguments[place])], arguments[place + 1], arguments[place + 2]
  answers[#answers + 1] = shelf and settle_as_wished(shelf, id, user, arguments[place + 3]) or denied[tonumber(arguments[place])]
end
return finish(answers)
