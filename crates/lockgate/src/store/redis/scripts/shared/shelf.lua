-- A campaign is three keys:
--   campaign  string, packed: quantity, granted, held, seq, rev, opens_at_us, closes_at_us, per_user (each 0 = not given),
--             due_at_us (when something in `due` is to be done, or earlier; 0 = never), switch (1 running, 2 paused, 3 closed),
--             stamp (under which run of the server it was last trusted); and behind these 81 bytes the line whose pass it demands,
--             or nothing
--   members   hash u<user> -> of a coupon the seq, or h<hold>; otherwise granted:held
--                  s<seq>  -> quantity:user, not of a coupon
--                  h<hold> -> state quantity expires_at_us seq remaining user (of an order over several partitions, in the
--                             place of remaining: when it was put aside)
--                  r<request> -> quantity seq purchased remaining user
--                  p<jti> -> when the pass that was used ends, in microseconds
--   due       zset g<hold> (give it back) or f<field of members> (forget it), by time
-- One packed string, because ten fields of a hash take Redis four times as long.

local function text(number)
  return string.format('%.0f', number)
end

-- The time is asked for once, and only by who needs it.
local time_us
local function now_us()
  if not time_us then
    local time = redis.call('TIME')
    time_us = time[1] * 1000000 + time[2]
  end
  return time_us
end

-- The campaign of that state, or false when there is none; `place` is that of its keys, `named` how the journal calls it.
local function shelf_of(state, place, named)
  if not state then
    return false
  end
  local quantity, granted, held, seq, rev, opens_at_us, closes_at_us, per_user, due_at_us, switch, stamp =
    struct.unpack(packing, state)
  return {
    key = keys[place], members = keys[place + campaigns], due = keys[place + 2 * campaigns], named = named,
    is_coupon = string.sub(named, 1, 7) == 'coupon:', quantity = quantity, granted = granted, held = held, seq = seq,
    rev = rev, opens_at_us = opens_at_us, closes_at_us = closes_at_us, per_user = per_user, due_at_us = due_at_us,
    switch = switch, stamp = stamp, line = string.sub(state, 82),
  }
end

local function save(shelf)
  redis.call('SET', shelf.key, struct.pack(packing, shelf.quantity, shelf.granted, shelf.held, shelf.seq, shelf.rev,
    shelf.opens_at_us, shelf.closes_at_us, shelf.per_user, shelf.due_at_us, shelf.switch, shelf.stamp) .. shelf.line)
  shelf.is_changed = false
end

local function remaining(shelf)
  return shelf.quantity - shelf.granted - shelf.held
end

-- 'open', or the words by which it denies.
local function state_of(shelf)
  if shelf.switch == 3 or shelf.closes_at_us > 0 and now_us() >= shelf.closes_at_us then
    return 'closed'
  elseif shelf.switch == 2 then
    return 'paused'
  elseif shelf.opens_at_us > 0 and now_us() < shelf.opens_at_us then
    return 'not-open ' .. text(shelf.opens_at_us)
  end
  return 'open'
end

-- Writes one change into the journal. Its time is in its id.
local function record(shelf, change, ...)
  shelf.rev = shelf.rev + 1
  shelf.is_changed = true
  redis.call('XADD', journal, '*', 'campaign', shelf.named, 'rev', text(shelf.rev), 'change', change, ...)
end

-- The same of a grant that uses up a pass, if it does.
local function record_using(pass, shelf, change, ...)
  if pass then
    record(shelf, change, 'pass', pass, ...)
  else
    record(shelf, change, ...)
  end
end

local function is_due(shelf)
  return shelf.due_at_us > 0 and shelf.due_at_us <= now_us()
end
