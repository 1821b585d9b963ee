-- Lets the line go on: notes who is there, ends what is over, admits those who are next, and forgets who is over for long.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  marks
-- KEYS[3]  gone
-- KEYS[4]  gaps
-- KEYS[5]  active
-- KEYS[6]  people
-- KEYS[7]  users
-- KEYS[8]  waits
-- ARGV[1]  its_edition    that the caller knows
-- ARGV[2]  seen           the places of people who are there, packed
-- ARGV[3]  known_head     where the head was, or empty
-- ARGV[4]  known_leaves   how many leaves there were, or empty
--
-- Returns  {'unknown'}    also when it is of another edition
--          {'ticked', numbers, waits, gone, passed}   numbers: the crowd, see shared/line.lua; head tail leaves passed_from
--              next_in_us admitted abandoned no_shows expired, where next_in_us is - when no batch is due; waits: tenths people,
--              of those who were admitted; gone: bits of the places from the head (rounded down to a multiple of 8) on, or nil;
--              passed: the marks of the places from passed_from up to the head
local line = KEYS[1]
local marks = KEYS[2]
local gone = KEYS[3]
local gaps = KEYS[4]
local active = KEYS[5]
local people = KEYS[6]
local users = KEYS[7]
local waits = KEYS[8]
local its_edition = tonumber(ARGV[1])
local seen = ARGV[2]
local known_head = tonumber(ARGV[3])
local known_leaves = tonumber(ARGV[4])
-- include the line's rules
-- include shared/line.lua
-- include shared/places.lua

if not state or edition ~= its_edition then
  return {'unknown'}
end
go_on()

-- Of thousands, so each is looked at as briefly as possible: many are unpacked at once, and only one of the four arguments of
-- each is another one.
local function note_seen()
  local now_tenths, together, arguments, n = text(tenths()), 200, {}, 0
  local packing, format = '>' .. string.rep('I4', together), string.format
  seen = seen .. string.rep('\255', -#seen % (4 * together))
  for at = 1, #seen, 4 * together do
    local places = {struct.unpack(packing, seen, at)}
    for i = 1, together do
      local place = places[i]
      if place >= head and place < tail then
        if not arguments[n + 4] then
          arguments[n + 1], arguments[n + 2], arguments[n + 4] = 'SET', 'u32', now_tenths
        end
        arguments[n + 3] = format('%d', (place - base) * 64 + 32)
        n = n + 4
      end
    end
    -- Lua can only pass so many arguments.
    if n > 6000 or n > 0 and at + 4 * together > #seen then
      redis.call('BITFIELD', marks, unpack(arguments, 1, n))
      n = 0
    end
  end
end

-- Counts several of a kind in their blocks, each with one call.
local function count_in_blocks(kind, counts)
  for its_block, count in pairs(counts) do
    count_in_block(kind, its_block, count)
  end
end

-- Whoever's time is over, as many as one call may end: how many were no-shows, and how many had shown their ticket.
local function end_overdue()
  local overdue = redis.call('ZRANGEBYSCORE', active, '-inf', text(time_us), 'LIMIT', 0, max_admit)
  if #overdue == 0 then
    return 0, 0
  end
  local absent, counts = 0, {}
  for i, its_mark in ipairs(marks_of(overdue)) do
    local its_block = block_of(overdue[i])
    counts[its_block] = (counts[its_block] or 0) - 1
    absent = its_mark == ADMITTED and absent + 1 or absent
    mark(overdue[i], text(its_mark == ADMITTED and NO_SHOW or EXPIRED))
  end
  write_marks()
  redis.call('ZREM', active, unpack(overdue))
  count_in_blocks(ACTIVE, counts)
  no_shows, expired = no_shows + absent, expired + #overdue - absent
  return absent, #overdue - absent
end

-- What a code looks like in the place of both marks.
local function both(code)
  return struct.pack('>I4I4', code, code)
end

-- Passes places from the head on until so many are admitted: those beyond the batch only if they waited when they were asked
-- for. Returns how many were admitted and abandoned, and how many waited for how long.
local function pass(by_batch, most)
  local looked_at = math.min(max_looked_at, tail - head)
  local its_marks = redis.call('GETRANGE', marks, (head - base) * 8, (head - base + looked_at) * 8 - 1)
  local first_at = math.floor((head - base) / 8)
  local bits = gaps_ahead > 0 and redis.call('GETRANGE', gone, first_at, math.floor((head - base + looked_at) / 8)) or ''
  local outcomes, members, waited, waits_in_order = {}, {}, {}, {}
  local gaps_passed, now_active, let_in, absent, wait = {}, {}, 0, 0, 0
  local is_admitted, is_left, is_abandoned = both(ADMITTED), both(LEFT), both(ABANDONED)
  local ends_us, now_tenths = text(time_us + (grace_us > 0 and grace_us or pass_ttl_us)), tenths()
  local opened_tenths, place = math.floor(opened_us / 100000), head
  while place < head + looked_at and let_in < most and (let_in < by_batch or place < extra_to) do
    local entered, its_seen = struct.unpack('>I4I4', its_marks, 8 * (place - head) + 1)
    local its_block, offset = block_of(place), place - base
    local byte = string.byte(bits, math.floor(offset / 8) - first_at + 1) or 0
    if byte > 0 and math.floor(byte / 2 ^ (7 - offset % 8)) % 2 == 1 then
      outcomes[#outcomes + 1] = is_left
      gaps_passed[its_block] = (gaps_passed[its_block] or 0) - 1
      gaps_ahead = gaps_ahead - 1
    elseif is_absent(its_seen) then
      outcomes[#outcomes + 1] = is_abandoned
      absent = absent + 1
    else
      outcomes[#outcomes + 1] = is_admitted
      let_in = let_in + 1
      members[2 * let_in - 1], members[2 * let_in] = ends_us, text(place)
      now_active[its_block] = (now_active[its_block] or 0) + 1
      wait = now_tenths - (entered == 0 and opened_tenths or entered)
      if not waited[wait] then
        waits_in_order[#waits_in_order + 1] = wait
      end
      waited[wait] = (waited[wait] or 0) + 1
    end
    place = place + 1
  end
  if place > head then
    redis.call('SETRANGE', marks, (head - base) * 8, table.concat(outcomes))
  end
  if let_in > 0 then
    redis.call('ZADD', active, unpack(members))
    redis.call('LPUSH', waits, string.format('%d %d', wait, let_in))
    redis.call('LTRIM', waits, 0, waits_kept - 1)
  end
  count_in_blocks(GONE, gaps_passed)
  count_in_blocks(ACTIVE, now_active)
  head, admitted, abandoned = place, admitted + let_in, abandoned + absent
  passed = passed + let_in + absent
  for i, its_wait in ipairs(waits_in_order) do
    waits_in_order[i] = string.format('%d %d', its_wait, waited[its_wait])
  end
  return let_in, absent, waits_in_order
end

local function room()
  return max_active > 0 and math.max(max_active - redis.call('ZCARD', active), 0) or math.huge
end

-- Admits those who are next, as many as one call may: how many were admitted and abandoned, how long they had waited, and
-- whether there is more to do at once.
local function admit()
  local how, free = how_it_is(), room()
  if how == 'running' and allowance == 0 and time_us >= next_at_us and waiting() > 0 and free > 0 then
    allowance, next_at_us = batch, time_us + every_us
  end
  local may_admit = how == 'running' or how == 'paused'
  local wanted = math.min(allowance + extra, free)
  if not may_admit or wanted == 0 then
    return 0, 0, {}, false
  end
  local let_in, absent, its_waits = pass(allowance, math.min(wanted, max_admit))
  -- It stopped because it had looked at or admitted as many as one call may; or there is nobody for whom it could go on.
  extra = math.max(extra - math.max(let_in - allowance, 0), 0)
  -- What was left of a large batch may have been asked for late: the next one is as far from the last of it.
  if allowance > 0 and let_in > 0 then
    next_at_us = time_us + every_us
  end
  allowance = math.max(allowance - let_in, 0)
  if head >= extra_to then
    extra = 0
  end
  if let_in == free or head == tail then
    allowance = 0
  end
  return let_in, absent, its_waits, let_in < free and head < tail and allowance + extra > 0
end

-- In how much of the line's time there is something to do, or -.
local function next_in(is_more)
  if is_more then
    return '0'
  end
  local how = how_it_is()
  if waiting() == 0 or how ~= 'running' and not (how == 'paused' and extra > 0) then
    return '-'
  end
  local due_us = extra > 0 and 0 or next_at_us
  if room() == 0 then
    due_us = math.max(due_us, tonumber(redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]))
  end
  return text(math.max(due_us - time_us, 0))
end

-- Before which place everybody is over.
local function over_up_to()
  local first = block_of(base)
  for i, count in ipairs(counts_in_blocks(ACTIVE, first, block_of(head))) do
    if count > 0 then
      return (first + i - 1) * block
    end
  end
  return head
end

-- Forgets whole blocks of places that were over an hour ago, when they are most of all places: the others have to be moved.
local function forget_places()
  if time_us >= checked_us + over_kept_us then
    checked_us, over_before, over_then = time_us, over_then, over_up_to()
  end
  local new_base = block_of(over_before) * block
  local going = new_base - base
  if going < forgotten_at_once or going * 2 < tail - base or new_base < early then
    return
  end
  redis.call('SET', marks, redis.call('GETRANGE', marks, going * 8, -1))
  redis.call('SET', gone, redis.call('GETRANGE', gone, going / 8, -1))
  base = new_base
end

-- Forgets some of the people whose places are forgotten; those who have entered again keep their new numbers.
local function forget_people()
  local count = math.min(base - people_base, people_at_once)
  if count == 0 then
    return
  end
  local names, over = redis.call('LPOP', people, count), {}
  for i, number in ipairs(redis.call('HMGET', users, unpack(names))) do
    if number == text(people_base + i - 1) then
      over[#over + 1] = names[i]
    end
  end
  if #over > 0 then
    redis.call('HDEL', users, unpack(over))
  end
  people_base = people_base + count
end

-- The places from the known head on, and where they begin.
local function passed_since()
  local from = math.min(math.max(known_head or head, head - max_passed, base), head)
  return from, from < head and redis.call('GETRANGE', marks, (from - base) * 8, (head - base) * 8 - 1) or ''
end

note_seen()
local now_absent, now_expired = end_overdue()
local let_in, now_abandoned, its_waits, is_more = admit()
local passed_from, its_passed = passed_since()
forget_places()
forget_people()
save()
local bits = known_leaves and known_leaves ~= leaves
  and redis.call('GETRANGE', gone, math.floor((head - base) / 8), math.floor((tail - base) / 8))
local numbers = string.format('%s %.0f %.0f %.0f %.0f %s %d %d %d %d', crowd(), head, tail, leaves, passed_from, next_in(is_more),
  let_in, now_abandoned, now_absent, now_expired)
return {'ticked', numbers, table.concat(its_waits, ' '), bits or false, its_passed}
