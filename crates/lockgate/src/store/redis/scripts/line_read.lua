-- Tells how the line stands.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  active
-- KEYS[3]  waits
--
-- Returns  {'unknown'}
--          {'line', numbers, secrets, drawn, eras, waits}   numbers: the crowd, see shared/line.lua; batch every_us max_active
--              pass_ttl_us grace_us opens_at_us is_prequeue edition early is_drawn tail head admitted left abandoned no_shows
--              expired finished, where early is - when it is not known; then what stands behind the numbers, in bytes; waits:
--              tenths people, the newest first
local line = KEYS[1]
local active = KEYS[2]
local waits = KEYS[3]
-- include the line's rules
-- include shared/line.lua

if not state then
  return {'unknown'}
end
go_on()
save()
local numbers = {
  crowd(), text(batch), text(every_us), text(max_active), text(pass_ttl_us), text(grace_us), text(opens_at_us),
  text(is_prequeue), text(edition), early >= 0 and text(early) or '-', drawn_us > 0 and '1' or '0', text(tail), text(head),
  text(admitted), text(left), text(abandoned), text(no_shows), text(expired), text(finished),
}
local rest = string.sub(state, #no_line + 1)
return {'line', table.concat(numbers, ' '), string.sub(rest, 1, 64), string.sub(rest, 65, 128), string.sub(rest, 129),
  table.concat(redis.call('LRANGE', waits, 0, -1), ' ')}
