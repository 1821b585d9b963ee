-- How it stands with tickets. Shared by the scripts that tell; needs shared/line.lua.

-- What the head and the end of somebody's time write into a place, above every time.
local ADMITTED, LEFT, ABANDONED, NO_SHOW, EXPIRED, FINISHED, LEFT_LATER =
  4294967295, 4294967294, 4294967293, 4294967292, 4294967291, 4294967290, 4294967289
local ENDINGS = {
  [LEFT] = 'left', [ABANDONED] = 'abandoned', [NO_SHOW] = 'no-show', [EXPIRED] = 'expired', [FINISHED] = 'finished',
  [LEFT_LATER] = 'left',
}

-- Where the number stands: the caller knows where drawn ones do. Nowhere, when there is no such ticket (any more).
local function place_of(number, its_place)
  local place = number
  if drawn_us > 0 and number < early then
    place = its_place < early and its_place or tail
  end
  return number < tail and place < tail and place >= base and place or nil
end

-- Where the second mark of a place is, in bits.
local function mark_at(place)
  return text((place - base) * 64 + 32)
end

-- The second marks of places.
local function marks_of(places)
  local gets = {}
  for i = 1, #places do
    gets[3 * i - 2], gets[3 * i - 1], gets[3 * i] = 'GET', 'u32', mark_at(places[i])
  end
  return #places > 0 and redis.call('BITFIELD', marks, unpack(gets)) or {}
end

-- Second marks that are to be written, in one go.
local sets, sets_count = {}, 0
local function write_marks()
  if sets_count > 0 then
    redis.call('BITFIELD', marks, unpack(sets, 1, sets_count))
    sets_count = 0
  end
end

local function mark(place, as)
  local n = sets_count
  sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u32', mark_at(place), as
  sets_count = n + 4
  -- Lua can only pass so many arguments.
  if n >= 6000 then
    write_marks()
  end
end

local function block_of(place)
  return math.floor(place / block)
end

-- The two numbers that are kept of each block.
local GONE, ACTIVE = 0, 1

-- So many more or fewer of a kind in a block.
local function count_in_block(kind, its_block, by)
  redis.call('BITFIELD', gaps, 'INCRBY', 'u32', '#' .. text(2 * its_block + kind), text(by))
end

-- The numbers of a kind, of the blocks from one up to another.
local function counts_in_blocks(kind, first, last)
  local length = 8 * (last - first + 1)
  local packed = redis.call('GETRANGE', gaps, 8 * first, 8 * first + length - 1)
  packed = packed .. string.rep('\0', length - #packed)
  local counts = {}
  for i = 1, last - first + 1 do
    counts[i] = struct.unpack('>I4', packed, 8 * i - 7 + 4 * kind)
  end
  return counts
end

local function ones(byte)
  local count = 0
  while byte > 0 do
    count = count + byte % 2
    byte = math.floor(byte / 2)
  end
  return count
end

-- The byte of the bitmap that a place has its bit in, and how many of its bits are before that one.
local function byte_of(place)
  local at = math.floor((place - base) / 8)
  return string.byte(redis.call('GETRANGE', gone, at, at)) or 0, (place - base) % 8, at
end

-- Of each block, from that of the head on: how many have left in it, and in those before it. Read when it is asked for.
local gaps_in, gaps_before, ones_before_head, head_byte_at
local function read_gaps()
  gaps_in, gaps_before = {}, {}
  local first, sum = block_of(head), 0
  for i, count in ipairs(counts_in_blocks(GONE, first, block_of(tail))) do
    gaps_in[first + i - 1], gaps_before[first + i - 1] = count, sum
    sum = sum + count
  end
  local byte, bits, at = byte_of(head)
  ones_before_head, head_byte_at = ones(math.floor(byte / 2 ^ (8 - bits))), at
end

-- How many have left places from the head up to this one, and whether this one was left.
local function gaps_up_to(place)
  if gaps_ahead == 0 then
    return 0, false
  end
  if not gaps_in then
    read_gaps()
  end
  local its_block = block_of(place)
  local count = gaps_before[its_block]
  if gaps_in[its_block] == 0 then
    return count, false
  end
  local byte, bits, at = byte_of(place)
  local first_at = (its_block * block - base) / 8
  if its_block == block_of(head) then
    first_at = head_byte_at
    count = count - ones_before_head
  end
  if at > first_at then
    count = count + redis.call('BITCOUNT', gone, first_at, at - 1)
  end
  return count + ones(math.floor(byte / 2 ^ (8 - bits))), math.floor(byte / 2 ^ (7 - bits)) % 2 == 1
end

-- When the time of an admitted place ends; nothing when it is over, although nobody may have taken note yet.
local function ends_us_of(place)
  local ends_us = tonumber(redis.call('ZSCORE', active, text(place)) or 0)
  return ends_us > time_us and ends_us or nil
end

-- The users of those who are admitted, in the order of the answers.
local users_told = {}

local function tell_admitted(number, ends_us, is_shown)
  local user = redis.call('LINDEX', people, number - people_base)
  users_told[#users_told + 1] = text(#user) .. ':' .. user
  return string.format('admitted %.0f %d', now_us + ends_us - time_us, is_shown and 1 or 0)
end

-- How it stands, in words:
--   unknown, early, waiting position
--   admitted until_us is_shown                     and its user is told
--   over left, over abandoned, over no-show, over expired, over finished, over closed
-- and whether it waits or, if it is admitted, when its time ends.
local function standing(number, place, its_mark)
  if not place then
    return 'unknown'
  elseif place < head then
    local ending = ENDINGS[its_mark]
    if ending then
      return 'over ' .. ending
    end
    local ends_us = ends_us_of(place)
    if not ends_us then
      return its_mark == ADMITTED and 'over no-show' or 'over expired'
    end
    return 'admitted', false, ends_us
  end
  local before, is_gone = gaps_up_to(place)
  if is_gone then
    return 'over left'
  elseif switch == 3 then
    return 'over closed'
  elseif opened_us == 0 or drawn_us == 0 and number < early then
    return 'early', true
  end
  return 'waiting ' .. text(place - head - before + 1), true
end

-- The same, complete.
local function told(number, place, its_mark)
  local words, _, ends_us = standing(number, place, its_mark)
  return ends_us and tell_admitted(number, ends_us, its_mark ~= ADMITTED) or words
end

-- The place of one who is admitted is over.
local function end_admitted(place, as)
  redis.call('ZREM', active, text(place))
  count_in_block(ACTIVE, block_of(place), -1)
  mark(place, text(as))
  write_marks()
end

-- The time of one who is admitted begins, perhaps anew. It is counted from when the ticket was shown first.
local function let_stay(number, place, its_mark)
  local shown, ends_us = its_mark, time_us + pass_ttl_us
  if its_mark == ADMITTED then
    shown = tenths()
    mark(place, text(shown))
  end
  ends_us = math.min(ends_us, (shown + 1) * 100000 + max_stay_us)
  redis.call('ZADD', active, ends_us, text(place))
  return tell_admitted(number, ends_us, true)
end
