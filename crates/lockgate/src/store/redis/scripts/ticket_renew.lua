-- Lets the time of somebody who is admitted begin anew. It counts as showing the ticket.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  gaps
-- KEYS[5]  active
-- KEYS[6]  people
-- ARGV[1]  its_edition    that the caller knows
-- ARGV[2]  number         of the ticket
-- ARGV[3]  its_place      where the caller knows it to stand
--
-- Returns  {'unknown'}    also when it is of another edition
--          {'told', line, users}   how it stands then, see shared/places.lua; and the user of one who is admitted, as length:user
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local gaps = KEYS[4]
local active = KEYS[5]
local people = KEYS[6]
local its_edition = tonumber(ARGV[1])
local number = tonumber(ARGV[2])
local its_place = tonumber(ARGV[3])
-- include the line's rules
-- include shared/ticket.lua

if ends_us then
  words = let_stay(number, place, its_mark)
  write_marks()
end
return tell(words)
