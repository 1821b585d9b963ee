-- Lets users into the line, in their order.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  gaps
-- KEYS[5]  active
-- KEYS[6]  people
-- KEYS[7]  users
-- ARGV[1]  its_edition    that the caller knows
-- ARGV[2]  known          of each user the number and the place that the caller knows, packed (a number of -1: none); empty when
--                         it knows none of any
-- ARGV[..] arguments      from the third on the users, and last: the run, see shared/run.lua
--
-- Returns  {'unknown'}    also when it is of another edition, or has become so by this call
--          {'told', crowd, lines, users}   the crowd, see shared/line.lua; then either one line that begins with * and holds for
--              all users, one place after the other, or one per user:
--              new number .., old number ..   each followed by how it stands, see shared/places.lua
--              drawn number
--              not-open opens_at_us, full, closed
--              and the users of those who are admitted, each as length:user
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local gaps = KEYS[4]
local active = KEYS[5]
local people = KEYS[6]
local users = KEYS[7]
local its_edition = tonumber(ARGV[1])
local known = ARGV[2]
local arguments = ARGV
-- include the line's rules
-- include shared/line.lua

if not state or edition ~= its_edition then
  return {'unknown'}
end
local run, first, last = arguments[#arguments], 3, #arguments - 1
local count = last - first + 1
-- include shared/run.lua
go_on()

local how = how_it_is()
local room, denial = count, nil
if how == 'closed' then
  room, denial = 0, 'closed'
elseif how == 'scheduled' then
  room, denial = 0, 'not-open ' .. text(opens_at_us)
elseif how == 'early' then
  room, denial = max_early - tail, 'full'
end

-- A server that may have forgotten numbers which it gave begins a new era, and the caller has to learn of it first.
local function begins_era()
  if stamp == stamp_then then
    return false
  end
  local eras = string.sub(state, #no_line + 129)
  local era = struct.unpack('>d', eras, #eras - 15)
  -- Two that were begun from the same old state are told apart by their time.
  local next_era = math.max(era + 1, math.floor(now_us / 1000000))
  eras = string.sub(eras .. struct.pack('>dd', next_era, tail), -16 * eras_kept)
  redis.call('SETRANGE', line, #no_line + 128, eras)
  stamp_then = stamp
  new_edition()
  save()
  return true
end

-- The number that is new is the tail, and so is the place.
local function standing_of_new()
  if how == 'early' then
    return 'early'
  end
  return 'waiting ' .. text(waiting() + 1)
end

local function let_in(new, how_many)
  redis.call('RPUSH', people, unpack(new))
  redis.call('SETRANGE', marks, (tail - base) * 8, string.rep(struct.pack('>I4I4', tenths(), tenths()), how_many))
  tail = tail + how_many
end

local function tell(lines, users_told)
  save()
  return {'told', crowd(), table.concat(lines, '\n'), table.concat(users_told)}
end

-- One user who is new: found out and inserted in one look-up.
if count == 1 and room > 0 and stamp == stamp_then
  and redis.call('HSETNX', users, arguments[first], text(tail)) == 1 then
  local answer = '* new ' .. text(tail) .. ' ' .. standing_of_new()
  let_in({arguments[first]}, 1)
  return tell({answer}, {})
end
local numbers = count > 0 and redis.call('HMGET', users, unpack(arguments, first, last)) or {}
local nobody_is_known = count > 0
for user = 1, count do
  if numbers[user] then
    nobody_is_known = false
    break
  end
end
if nobody_is_known and room == 0 then
  local answer = '* ' .. denial
  return tell({answer}, {})
end
if nobody_is_known and room >= count and not begins_era() then
  local new = {}
  for user = 1, count do
    new[2 * user - 1], new[2 * user] = arguments[first + user - 1], text(tail + user - 1)
  end
  if redis.call('HSET', users, unpack(new)) == count then
    local answer = '* new ' .. text(tail) .. ' ' .. standing_of_new()
    let_in({unpack(arguments, first, last)}, count)
    return tell({answer}, {})
  end
  -- A user comes twice.
  redis.call('HDEL', users, unpack(arguments, first, last))
end
if edition ~= its_edition then
  return {'unknown'}
end

-- include shared/places.lua

-- Where those stand who have a number; a drawn place only the caller knows.
local places, places_read, is_drawn = {}, {}, {}
for user = 1, count do
  local number = tonumber(numbers[user])
  if number and number >= base then
    local known_number, known_place = -1, 0
    if known ~= '' then
      known_number, known_place = struct.unpack('>dd', known, 16 * user - 15)
    end
    if drawn_us > 0 and number < early and known_number ~= number then
      is_drawn[user] = true
    else
      places[user] = place_of(number, known_place)
      places_read[#places_read + 1] = places[user]
    end
  end
end
local marks_read, mark_of = marks_of(places_read), {}
for i, place in ipairs(places_read) do
  mark_of[place] = marks_read[i]
end

-- Nothing is done before it is clear that nobody begins an era.
local standings, waits_still, ends, is_in = {}, {}, {}, {}
local needs_number = false
for user = 1, count do
  local place = places[user]
  if place then
    standings[user], waits_still[user], ends[user] = standing(tonumber(numbers[user]), place, mark_of[place])
    is_in[user] = waits_still[user] or ends[user] ~= nil
  end
  needs_number = needs_number or not is_in[user] and not is_drawn[user]
end
if needs_number and room > 0 and begins_era() then
  return {'unknown'}
end

local answers, new, new_numbers, number_in_this_call = {}, {}, {}, {}
local tail_before, now_waiting, now_tenths = tail, waiting(), text(tenths())
for user = 1, count do
  local name = arguments[first + user - 1]
  local has, answer = number_in_this_call[name], nil
  if is_drawn[user] then
    answer = 'drawn ' .. numbers[user]
  elseif is_in[user] then
    local its_mark = mark_of[places[user]]
    if waits_still[user] then
      mark(places[user], now_tenths)
    end
    local words = ends[user] and tell_admitted(tonumber(numbers[user]), ends[user], its_mark ~= ADMITTED) or standings[user]
    answer = 'old ' .. numbers[user] .. ' ' .. words
  elseif not has and #new >= room then
    answer = denial
  else
    local word, number = 'old ', has
    if not has then
      word, number = 'new ', tail_before + #new
      new[#new + 1] = name
      new_numbers[2 * #new - 1], new_numbers[2 * #new] = name, text(number)
      number_in_this_call[name] = number
    end
    local words = how == 'early' and how or 'waiting ' .. text(now_waiting + number - tail_before + 1)
    answer = word .. text(number) .. ' ' .. words
  end
  answers[user] = answer
end
if #new > 0 then
  redis.call('HSET', users, unpack(new_numbers))
  let_in(new, #new)
end
write_marks()
return tell(answers, users_told)
