-- Lists those who came early, by their numbers.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  people
-- ARGV[1]  from           the first number
-- ARGV[2]  limit          how many at the most
--
-- Returns  {'unknown'}    there is no such line, or it is not open, or has no pre-queue, or they are forgotten
--          {'arrivals', gone, users}   gone: one digit for each, 1: has left or was not seen, as far as that is known by
--              number, which is until the draw; users: each as length:user
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local people = KEYS[4]
local from = tonumber(ARGV[1])
local limit = tonumber(ARGV[2])
-- include the line's rules
-- include shared/line.lua

if not state then
  return {'unknown'}
end
go_on()
save()
if early < 0 or early > 0 and base >= early then
  return {'unknown'}
end
local count = math.min(limit, early - from)
if count <= 0 then
  return {'arrivals', '', ''}
end

local packed, lengths = {}, {}
for i, user in ipairs(redis.call('LRANGE', people, from, from + count - 1)) do
  lengths[#user] = lengths[#user] or text(#user) .. ':'
  packed[2 * i - 1], packed[2 * i] = lengths[#user], user
end

-- Thousands, so many marks are unpacked at once.
local function digits()
  local together, answers = 200, {}
  local packing = '>' .. string.rep('xxxxI4', together)
  local its_marks = redis.call('GETRANGE', marks, from * 8, (from + count) * 8 - 1)
  its_marks = its_marks .. string.rep('\0', -#its_marks % (8 * together))
  local first_at = math.floor(from / 8)
  local bits = redis.call('GETRANGE', gone, first_at, math.floor((from + count - 1) / 8))
  for first = 0, count - 1, together do
    local seen = {struct.unpack(packing, its_marks, 8 * first + 1)}
    for i = first + 1, math.min(first + together, count) do
      local number = from + i - 1
      local byte = string.byte(bits, math.floor(number / 8) - first_at + 1) or 0
      local has_left = byte > 0 and math.floor(byte / 2 ^ (7 - number % 8)) % 2 == 1
      answers[i] = (has_left or is_absent(seen[i - first])) and '1' or '0'
    end
  end
  return table.concat(answers)
end

return {'arrivals', drawn_us == 0 and digits() or string.rep('0', count), table.concat(packed)}
