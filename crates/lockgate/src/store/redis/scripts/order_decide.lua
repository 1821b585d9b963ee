-- Decides what becomes of an attempt to place an order over several partitions, for ever.
--
-- KEYS[1]  record         the order's: its attempt and its holds, line feed, its seqs (nothing until all is settled), line
--                         feed, its content
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answer
-- KEYS[3]  aborted        exists when this attempt is aborted
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  decision       commit, abort or settled
-- ARGV[3]  attempt
-- ARGV[4]  numbers        commit: the holds; settled: the seqs
-- ARGV[5]  content        commit: of the order, only compared and kept
-- ARGV[6]  reserved_at_us commit: when the first of it was put aside
--
-- Returns  one line
--          committed                           then a line feed and what the record holds
--          already                             the same by another attempt; then as above
--          reused                              another content by another attempt
--          aborted
--          unknown                             nothing is known of an attempt that is said to be settled
--          or, for a late copy: late
local record = KEYS[1]
local sending = KEYS[2]
local aborted = KEYS[3]
local number = tonumber(ARGV[1])
local decision = ARGV[2]
local attempt = ARGV[3]
local numbers = ARGV[4]
local content = ARGV[5]
local reserved_at_us = tonumber(ARGV[6])
local keys, campaigns = KEYS, 0
-- include the stock's rules
-- include shared/replay.lua

local known = redis.call('GET', record)
local is_committed = known and string.sub(known, 1, 32) == attempt

local function content_of(known)
  local holds_end = string.find(known, '\n', 1, true)
  local seqs_end = string.find(known, '\n', holds_end + 1, true)
  return string.sub(known, seqs_end + 1)
end

local function is_too_late()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] > reserved_at_us + commit_within_us
end

local function can_be_committed()
  return not known and redis.call('EXISTS', aborted) == 0 and not is_too_late()
end

local function decide()
  if decision == 'settled' and not is_committed then
    return 'unknown'
  elseif decision == 'settled' then
    local holds = string.sub(known, 1, string.find(known, '\n', 1, true))
    known = holds .. numbers .. '\n' .. content_of(known)
    redis.call('SET', record, known, 'PX', request_kept_us / 1000)
  elseif decision == 'commit' and can_be_committed() then
    known, is_committed = attempt .. ' ' .. numbers .. '\n\n' .. content, true
    redis.call('SET', record, known, 'PX', unsettled_kept_us / 1000)
  end
  if is_committed then
    return 'committed' .. '\n' .. known
  end
  -- For good: also when what stands in its way is forgotten one day.
  redis.call('SET', aborted, '', 'PX', request_kept_us / 1000)
  if decision == 'abort' or not known then
    return 'aborted'
  elseif content_of(known) == content then
    return 'already' .. '\n' .. known
  end
  return 'reused'
end

local answer = decide()
redis.call('SET', sending, struct.pack('>d', number) .. answer, 'PX', sending_kept_ms)
return answer
