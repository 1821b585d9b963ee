-- Pauses, resumes or closes the line. What is closed stays closed.
--
-- KEYS[1]  line           see shared/line.lua
-- ARGV[1]  to             the switch: 1 resumes, 2 pauses, 3 closes
--
-- Returns  one line
--          unknown
--          scheduled, early, drawing, running, paused, closed    how it is then
local line = KEYS[1]
local to = tonumber(ARGV[1])
-- include the line's rules
-- include shared/line.lua

if not state then
  return 'unknown'
end
go_on()
if switch ~= 3 and switch ~= to then
  -- Nothing of a batch is made up for.
  switch, allowance = to, 0
end
if switch == 3 then
  extra = 0
end
save()
return how_it_is()
