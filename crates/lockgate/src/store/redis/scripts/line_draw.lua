-- Puts those who came early in order, and lets the line begin to admit.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  gaps
-- ARGV[1]  its_early      how many came early
-- ARGV[2]  drawn          hash and seed, 64 bytes
-- ARGV[3]  its_gone       who will not be admitted: a bit per place
--
-- Returns  one line
--          unknown
--          drawn, already
--          again          another number came early
--          not-drawing
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local gaps = KEYS[4]
local its_early = tonumber(ARGV[1])
local drawn = ARGV[2]
local its_gone = ARGV[3]
-- include the line's rules
-- include shared/line.lua

if not state then
  return 'unknown'
end
go_on()
local how = how_it_is()
if drawn_us > 0 or how ~= 'drawing' or its_early ~= early then
  save()
  return drawn_us > 0 and 'already' or how ~= 'drawing' and 'not-drawing' or 'again'
end

-- The last byte may belong to some who came later, too: they keep their bits.
local shared_bits = early % 8
if shared_bits > 0 then
  local at, later = (early - shared_bits) / 8, 2 ^ (8 - shared_bits)
  local theirs = (string.byte(redis.call('GETRANGE', gone, at, at)) or 0) % later
  local ours = string.byte(its_gone, at + 1)
  its_gone = string.sub(its_gone, 1, at) .. string.char(ours - ours % later + theirs)
end
if early > 0 then
  redis.call('SETRANGE', gone, 0, its_gone)
  -- A string that is written behind its end is filled with zeros, and nobody has to build them here.
  local later = redis.call('GETRANGE', marks, early * 8, -1)
  redis.call('DEL', marks)
  redis.call('SETRANGE', marks, later == '' and early * 8 - 1 or early * 8, later == '' and '\0' or later)
end

local had_left, counts = gaps_ahead, {}
gaps_ahead = 0
for its_block = 0, math.floor(tail / block) do
  local count = redis.call('BITCOUNT', gone, its_block * block / 8, (its_block + 1) * block / 8 - 1)
  counts[#counts + 1] = struct.pack('>I4I4', count, 0)
  gaps_ahead = gaps_ahead + count
end
redis.call('SET', gaps, table.concat(counts))
-- Whoever is not to be admitted and had not left was not seen.
abandoned, leaves = abandoned + gaps_ahead - had_left, leaves + 1
drawn_us, next_at_us = time_us, time_us
new_edition()
redis.call('SETRANGE', line, #no_line + 64, drawn)
save()
return 'drawn'
