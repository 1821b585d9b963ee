-- Places orders, each in turn, whole or not at all.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each article the campaign, then of each its members, then of each what is due (see
--                         shared/shelf.lua); then one per order: its seqs, line feed, its content
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved for the passes of a line: empty
-- ARGV[3]  campaigns      how many articles there are
-- ARGV[..] arguments      how the journal calls each article; then per order: id, user, content (only compared and kept),
--                         how many items, and per item: which article, quantity
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines, one per order; an item is its place in the order, from 0
--          placed seq..
--          already seq..                       as this order was answered before
--          reused                              the same id with another content
--          short ..                            and for each that is: item requested available
--          not-open item opens_at_us, paused item, closed item, unknown item, recovering item
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
-- include shared/deny.lua

local function replay(order, content)
  local before = redis.call('GET', order)
  if not before then
    return nil
  end
  local ends = string.find(before, '\n', 1, true)
  if string.sub(before, ends + 1) ~= content then
    return 'reused'
  end
  return 'already ' .. string.sub(before, 1, ends - 1)
end

local function take(order, id, user, content, first, items)
  local seqs = {}
  for item = 0, items - 1 do
    local shelf, quantity = shelves[tonumber(arguments[first + 2 * item])], tonumber(arguments[first + 2 * item + 1])
    local seq = grant(shelf, user, quantity)
    record(shelf, 'bought', 'seq', seq, 'user', user, 'quantity', text(quantity), 'request', id)
    seqs[#seqs + 1] = seq
  end
  local numbers = table.concat(seqs, ' ')
  redis.call('SET', order, numbers .. '\n' .. content, 'PX', request_kept_us / 1000)
  return 'placed ' .. numbers
end

local answers = {}
local order_key = 3 * campaigns + 3
while at <= wishes_end do
  local id, user, content, items = arguments[at], arguments[at + 1], arguments[at + 2], tonumber(arguments[at + 3])
  local first, order = at + 4, keys[order_key]
  answers[#answers + 1] = replay(order, content)
    or deny(first, items, 2)
    or take(order, id, user, content, first, items)
  at, order_key = first + 2 * items, order_key + 1
end
return finish(answers)
