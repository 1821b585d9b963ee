-- Pauses, resumes, closes or restocks the campaign.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           the campaign's three: see shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         reserved: empty
-- ARGV[3]  campaigns      1
-- ARGV[..] arguments      how the journal calls it; pause, resume, close or restock; by how many (0 unless restock)
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  one line
--          now ..                              followed by what shared/standing.lua says
--          closed, too-many                    nothing has changed
--          unknown, recovering
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

local shelf, change, by = shelves[1], arguments[at], tonumber(arguments[at + 1])
local switched_to = {resume = 1, pause = 2, close = 3}
if not shelf then
  return finish({denied[1]})
elseif shelf.switch == 3 and change ~= 'close' then
  return finish({'closed'})
elseif by > max_quantity - shelf.quantity then
  return finish({'too-many'})
end
local switch, quantity = switched_to[change] or shelf.switch, shelf.quantity + by
if switch ~= shelf.switch or quantity ~= shelf.quantity then
  shelf.switch, shelf.quantity = switch, quantity
  record(shelf, 'changed', 'how', change, 'by', text(by))
end
return finish({'now ' .. standing(shelf)})
