-- How a line is kept. Shared by the scripts of lines and tickets.
--
-- A line is these keys, which end only when it is forgotten:
--   line      string, packed, in this order (times of the line's own in microseconds, from 100,000 on):
--               time_us, wall_us (the server's time at the last call), edition, stamp (under which run of the server the last
--               number was given), switch (1 running, 2 paused, 3 closed)
--               batch, every_us, max_active, pass_ttl_us, grace_us, opens_at_us (each 0 = not given), is_prequeue (1 or 0)
--               next_at_us (when the next batch is due), allowance (what is left of the present one), extra (how many to
--               admit beyond the rate), extra_to (all of them before this place)
--               head, tail (the next number), base and people_base (the first place and the first number that are still kept),
--               gaps_ahead (how many have left places from the head on), leaves
--               admitted, left, abandoned, no_shows, expired, finished
--               opened_us (when its time came; 0: it has not), early (-1: not known), drawn_us (0: not drawn)
--               passed (who was passed lately, fading), running_us
--               checked_us (when it was last noted what is over), over_then, over_before (all places below were over at that
--               time, and at the time before that)
--             then the secrets (64 bytes), how the places were drawn (64 bytes: hash, seed), and the eras (packed: era, from)
--   users     hash of everybody's last number, until it is forgotten
--   people    list of users by number, from people_base on
--   marks     string, per place from base on two numbers of four bytes, in tenths of a second of the line's time: when it was
--             entered and when it was seen last; both 0: when the places were drawn. The head writes a code (see below) in the
--             place of both when it passes; whoever is admitted and shows the ticket has the time of that as the second.
--   gone      string, per place from base on a bit: whether it was left before the head came
--   gaps      string, per block of places (from place 0 on) two numbers of four bytes: how many of them were left, from the head
--             on, and how many are admitted
--   active    zset of the places of those who are admitted, by the end of their time
--   waits     list: tenths of a second that the last of those waited who were admitted together, and how many they were
--   requests  list: token and how many, of those who asked to admit people
-- One packed string, because forty fields of a hash take Redis four times as long.

local state = redis.call('GET', line)
local time_us, wall_us, edition, stamp_then, switch, batch, every_us, max_active, pass_ttl_us, grace_us, opens_at_us,
  is_prequeue, next_at_us, allowance, extra, extra_to, head, tail, base, people_base, gaps_ahead, leaves, admitted, left,
  abandoned, no_shows, expired, finished, opened_us, early, drawn_us, passed, running_us, checked_us, over_then, over_before =
  struct.unpack(line_packing, state or no_line)

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]

-- Redis prints a number that it is given as if it had a fraction, which takes it three times as long.
local function text(number)
  return string.format('%d', number)
end

-- Only the numbers: what stands behind them stays.
local function save()
  redis.call('SETRANGE', line, 0, struct.pack(line_packing, time_us, wall_us, edition, stamp_then, switch, batch, every_us,
    max_active, pass_ttl_us, grace_us, opens_at_us, is_prequeue, next_at_us, allowance, extra, extra_to, head, tail, base,
    people_base, gaps_ahead, leaves, admitted, left, abandoned, no_shows, expired, finished, opened_us, early, drawn_us,
    passed, running_us, checked_us, over_then, over_before))
end

local function how_it_is()
  if switch == 3 then
    return 'closed'
  elseif opened_us == 0 then
    return is_prequeue == 1 and 'early' or 'scheduled'
  elseif early >= 0 and drawn_us == 0 then
    return 'drawing'
  end
  return switch == 2 and 'paused' or 'running'
end

-- The time constant of the pace, in microseconds.
local function fades_in_us()
  return math.max(5 * every_us, 10000000)
end

-- Its time may have come. From then on nobody is early.
local function notice_opening()
  if opened_us == 0 and switch ~= 3 and now_us >= opens_at_us then
    opened_us = time_us
    next_at_us = time_us
    early = is_prequeue == 1 and tail or -1
  end
end

-- Lets the line's own time go on: never back, and never far at once.
local function go_on()
  local longest_us = grace_us > 0 and math.min(math.floor(grace_us / 2), longest_step_us) or longest_step_us
  local step_us = math.max(math.min(now_us - wall_us, longest_us), 0)
  time_us, wall_us = time_us + step_us, now_us
  if how_it_is() == 'running' then
    passed = passed * math.exp(-step_us / fades_in_us())
    running_us = running_us + step_us
  end
  notice_opening()
end

local function waiting()
  return tail - head - gaps_ahead
end

local function new_edition()
  edition = math.max(edition + 1, now_us)
end

-- People in a million seconds, or - when nothing was measured. The first batch comes at the beginning of its interval, and
-- counts for all of it.
local function pace()
  if passed == 0 and running_us < every_us then
    return '-'
  end
  local over_us = fades_in_us() * (1 - math.exp(-(running_us + every_us) / fades_in_us()))
  return text(math.floor(passed / over_us * 1e12 + 0.5))
end

-- What everybody may know: state waiting active pace.
local function crowd()
  return string.format('%s %.0f %.0f %s', how_it_is(), waiting(), redis.call('ZCARD', active), pace())
end

local function tenths()
  return math.floor(time_us / 100000)
end

-- Whether somebody of that mark was not seen for longer than the grace period. A mark is up to a tenth of a second older than
-- the sign of life: nobody is passed over for that.
local function is_absent(seen)
  local seen_us = seen == 0 and drawn_us or (seen + 1) * 100000
  return grace_us > 0 and time_us - seen_us > grace_us
end
