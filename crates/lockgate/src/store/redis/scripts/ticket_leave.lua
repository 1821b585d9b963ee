-- Ends a ticket that waits or is admitted.
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

-- While the places are drawn, those who came early stay: whoever draws has counted them.
if waits and words == 'early' and how_it_is() == 'drawing' then
  waits = nil
end
if waits then
  redis.call('SETBIT', gone, place - base, 1)
  count_in_block(GONE, block_of(place), 1)
  gaps_ahead, left, leaves = gaps_ahead + 1, left + 1, leaves + 1
  words = 'over left'
elseif ends_us then
  end_admitted(place, LEFT_LATER)
  finished = finished + 1
  words = 'over left'
end
return tell(words)
