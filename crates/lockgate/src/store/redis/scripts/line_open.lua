-- Creates the line, or replaces its terms.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  users
-- KEYS[3]  lines          see line_list.lua
-- ARGV[1]  name           of the line
-- ARGV[2]  its_batch
-- ARGV[3]  its_every_us
-- ARGV[4]  its_max_active   0: as many as come
-- ARGV[5]  its_pass_ttl_us
-- ARGV[6]  its_grace_us     0: everybody is waited for
-- ARGV[7]  its_opens_at_us  0: it is open from now on
-- ARGV[8]  its_prequeue     1 or 0
-- ARGV[9]  secrets          64 bytes
-- ARGV[10] run              see shared/run.lua
--
-- Returns  one line
--          created, changed, too-late
local line = KEYS[1]
local users = KEYS[2]
local lines = KEYS[3]
local name = ARGV[1]
local its_batch = tonumber(ARGV[2])
local its_every_us = tonumber(ARGV[3])
local its_max_active = tonumber(ARGV[4])
local its_pass_ttl_us = tonumber(ARGV[5])
local its_grace_us = tonumber(ARGV[6])
local its_opens_at_us = tonumber(ARGV[7])
local its_prequeue = tonumber(ARGV[8])
local secrets = ARGV[9]
local run = ARGV[10]
-- include the line's rules
-- include shared/line.lua

local function set_terms()
  batch, every_us, max_active, pass_ttl_us = its_batch, its_every_us, its_max_active, its_pass_ttl_us
  grace_us, opens_at_us, is_prequeue = its_grace_us, its_opens_at_us, its_prequeue
end

if not state then
  -- include shared/run.lua
  -- A hash stays a hash table from the beginning: looking for a thousand users in a short list takes longer.
  redis.call('HSET', users, '', 'the last number of everybody who has entered this line of Lockgate: <user> <number>')
  redis.call('ZADD', lines, 0, name)
  redis.call('SET', line, no_line .. secrets .. string.rep('\0', 64) .. struct.pack('>dd', 1, 0))
  time_us, wall_us, stamp_then, switch, early, checked_us = 100000, now_us, stamp, 1, -1, 100000
  new_edition()
  set_terms()
  notice_opening()
  save()
  return 'created'
end

go_on()
local moves_opening = opens_at_us ~= its_opens_at_us or is_prequeue ~= its_prequeue
if opened_us > 0 and moves_opening or tail > 0 and is_prequeue ~= its_prequeue then
  save()
  return 'too-late'
end
-- Who serves the line goes by what it knows of the terms.
local before = table.concat({batch, every_us, max_active, pass_ttl_us, grace_us, opens_at_us, is_prequeue}, ' ')
set_terms()
if before ~= table.concat({batch, every_us, max_active, pass_ttl_us, grace_us, opens_at_us, is_prequeue}, ' ') then
  new_edition()
end
next_at_us = math.min(next_at_us, time_us + every_us)
notice_opening()
save()
return 'changed'
