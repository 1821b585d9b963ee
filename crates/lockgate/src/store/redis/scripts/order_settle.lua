-- Makes what was put aside for an order in this partition grants, or gives it back, and ends the doubt about it.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each article the campaign, then of each its members, then of each what is due (see
--                         shared/shelf.lua); then the doubts: see order_reserve.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved: empty
-- ARGV[3]  campaigns      how many articles there are
-- ARGV[..] arguments      how the journal calls each article; then the part, confirm or cancel, and per item: which article, hold
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  one line
--          confirmed seq.., cancelled          also when it was so before
--          was-confirmed, was-cancelled        some of it was settled the other way
--          unknown                             some of what is to be confirmed was never put aside
--          recovering                          nothing has changed
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

local doubts = keys[3 * campaigns + 3]
local part, wish = arguments[at], arguments[at + 1]
local wished = wish == 'confirm' and 'confirmed' or 'cancelled'
local is_unknown, is_opposite, seqs = false, false, {}

-- What may have lost something is not touched, and the doubt stays.
for place = 1, campaigns do
  if denied[place] == 'recovering' then
    return finish({'recovering'})
  end
end

-- Whatever is still held is settled, also when something else of the part cannot be: nobody will come for it any more.
for here = at + 2, wishes_end, 2 do
  local shelf, id = shelves[tonumber(arguments[here])], arguments[here + 1]
  local hold = shelf and hold_of(shelf, id)
  if not hold then
    is_unknown = is_unknown or wish == 'confirm'
  elseif hold.state == 'held' and wish == 'confirm' then
    seqs[#seqs + 1] = confirm(shelf, id, hold)
  elseif hold.state == 'held' then
    cancel(shelf, id, hold)
  else
    is_opposite = is_opposite or hold.state ~= wished
    seqs[#seqs + 1] = hold.seq
  end
end
redis.call('ZREM', doubts, part)

local answer = 'cancelled'
if is_unknown then
  answer = 'unknown'
elseif is_opposite then
  answer = wish == 'confirm' and 'was-cancelled' or 'was-confirmed'
elseif wish == 'confirm' then
  answer = 'confirmed ' .. table.concat(seqs, ' ')
end
return finish({answer})
