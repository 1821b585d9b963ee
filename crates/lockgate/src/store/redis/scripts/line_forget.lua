-- Removes a line that is closed, with everybody in it.
--
-- KEYS[1]  line           see shared/line.lua
-- KEYS[2]  lines          see line_list.lua
-- KEYS[..] keys           the same, and then all others of the line
-- ARGV[1]  name           of the line
--
-- Returns  one line
--          forgotten      there is none now
--          not-closed
local line = KEYS[1]
local lines = KEYS[2]
local keys = KEYS
local name = ARGV[1]
-- include the line's rules
-- include shared/line.lua

if state and switch ~= 3 then
  return 'not-closed'
end
-- Not at once: it may be millions of people.
redis.call('UNLINK', line, unpack(keys, 3))
redis.call('ZREM', lines, name)
return 'forgotten'
