-- Creates the campaign, or replaces its terms.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           the campaign's three: see shared/shelf.lua; then the list of the partition's campaigns
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved: empty
-- ARGV[3]  campaigns      1
-- ARGV[..] arguments      how the journal calls it; quantity, opens_at_us, closes_at_us, per_user (each 0 = not given), the
--                         line whose pass it demands, or nothing
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  one line
--          created .., changed ..              each followed by what shared/standing.lua says
--          below-issued issued                 nothing has changed
--          recovering
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
-- include shared/standing.lua

local quantity, opens_at_us, closes_at_us, per_user, line = unpack(arguments, at, at + 4)
local shelf = shelves[1]
if denied[1] == 'recovering' then
  return finish({'recovering'})
end
local word = shelf and 'changed' or 'created'
if not shelf then
  -- A hash stays a hash table from the beginning: looking for a thousand users in a short list takes longer.
  redis.call('HSET', keys[4], '', 'u<user> s<seq> h<hold> r<request> p<pass>: who has what of this campaign of Lockgate')
  redis.call('ZADD', keys[6], 0, arguments[4])
  shelf = {
    key = keys[3], members = keys[4], due = keys[5], named = arguments[4], granted = 0, held = 0, seq = 0, rev = 0,
    due_at_us = 0, switch = 1, quantity = -1, stamp = stamp, line = '',
  }
  shelves[1] = shelf
end
if shelf.granted + shelf.held > tonumber(quantity) then
  return finish({'below-issued ' .. text(shelf.granted + shelf.held)})
end
if shelf.quantity ~= tonumber(quantity) or shelf.opens_at_us ~= tonumber(opens_at_us)
  or shelf.closes_at_us ~= tonumber(closes_at_us) or shelf.per_user ~= tonumber(per_user) or shelf.line ~= line then
  shelf.quantity, shelf.opens_at_us = tonumber(quantity), tonumber(opens_at_us)
  shelf.closes_at_us, shelf.per_user, shelf.line = tonumber(closes_at_us), tonumber(per_user), line
  record(shelf, 'opened', 'quantity', quantity, 'opens_at_us', opens_at_us, 'closes_at_us', closes_at_us,
    'per_user', per_user, 'line', line)
end
return finish({word .. ' ' .. standing(shelf)})
