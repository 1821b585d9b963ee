-- Tells how it stands with tickets, in their order. Whoever shows one is seen.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  gaps
-- KEYS[5]  active
-- KEYS[6]  people
-- ARGV[1]  its_edition    that the caller knows
-- ARGV[2]  tickets        of each the number and the place, packed
--
-- Returns  {'unknown'}    also when it is of another edition
--          {'told', crowd, lines, users}   the crowd, see shared/line.lua; one line per ticket, see shared/places.lua; and the
--              users of those who are admitted, each as length:user
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local gaps = KEYS[4]
local active = KEYS[5]
local people = KEYS[6]
local its_edition = tonumber(ARGV[1])
local tickets = ARGV[2]
-- include the line's rules
-- include shared/line.lua
-- include shared/places.lua

if not state or edition ~= its_edition then
  return {'unknown'}
end
go_on()
local numbers, places, places_read, answers = {}, {}, {}, {}
local count = #tickets / 16
for ticket = 1, count do
  local number, its_place = struct.unpack('>dd', tickets, 16 * ticket - 15)
  local place = place_of(number, its_place)
  numbers[ticket], places[ticket] = number, place or false
  places_read[#places_read + 1] = place
end
local marks_read, read, now_tenths = marks_of(places_read), 0, text(tenths())
for ticket = 1, count do
  local number, place = numbers[ticket], places[ticket]
  read = place and read + 1 or read
  local its_mark = place and marks_read[read]
  local words, waits, ends_us = standing(number, place, its_mark)
  if waits then
    mark(place, now_tenths)
  elseif ends_us and its_mark == ADMITTED then
    words = let_stay(number, place, its_mark)
  elseif ends_us then
    words = tell_admitted(number, ends_us, true)
  end
  answers[ticket] = words
end
write_marks()
save()
return {'told', crowd(), table.concat(answers, '\n'), table.concat(users_told)}
