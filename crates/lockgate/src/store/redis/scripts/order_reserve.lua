-- Puts aside what an order wants of this partition, all of it or nothing.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each article the campaign, then of each its members, then of each what is due (see
--                         shared/shelf.lua); then the doubts: a zset of parts, by the time from which on they may be doubted
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved for the passes of a line: empty
-- ARGV[3]  campaigns      how many articles there are
-- ARGV[..] arguments      how the journal calls each article; then the part (only kept), the user, doubt_after_us (or nothing:
--                         it is only asked), and per item: which article, quantity, its place in the order, hold
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  one line
--          reserved at_us                      also when it was reserved before, and whatever became of it
--          available                           it was only asked
--          short ..                            and for each that is: place requested available
--          not-open place opens_at_us, paused place, closed place, unknown place, recovering place
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
-- include shared/put_aside.lua

local doubts = keys[3 * campaigns + 3]
local part, user, doubt_after_us = arguments[at], arguments[at + 1], tonumber(arguments[at + 2])
local first = at + 3
local items = (wishes_end - first + 1) / 4

local function shelf_and_hold(item)
  local here = first + 4 * item
  return shelves[tonumber(arguments[here])], arguments[here + 3]
end

-- When it was reserved before, or nil. That of an order's hold stands in the place of what was left.
local function replay()
  for item = 0, items - 1 do
    local shelf, id = shelf_and_hold(item)
    local before = shelf and hold_of(shelf, id)
    if before then
      return 'reserved ' .. before.left
    end
  end
  return nil
end

-- It never goes back by itself: its end is the end of time, and it is not among what is due.
local function reserve()
  local now = text(now_us())
  for item = 0, items - 1 do
    local shelf, id = shelf_and_hold(item)
    put_aside(shelf, id, user, tonumber(arguments[first + 4 * item + 1]), text(max_quantity), now)
  end
  redis.call('ZADD', doubts, text(now_us() + doubt_after_us), part)
  return 'reserved ' .. now
end

local answer = replay() or deny(first, items, 4) or not doubt_after_us and 'available' or reserve()
return finish({answer})
