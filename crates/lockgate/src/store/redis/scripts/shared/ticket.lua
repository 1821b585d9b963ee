-- include shared/line.lua
-- include shared/places.lua

if not state or edition ~= its_edition then
  return {'unknown'}
end
go_on()
local place = place_of(number, its_place)
local its_mark = place and marks_of({place})[1]
local words, waits, ends_us = standing(number, place, its_mark)

-- How it stands, and the user if it is admitted.
local function tell(how)
  save()
  return {'told', how, table.concat(users_told)}
end
