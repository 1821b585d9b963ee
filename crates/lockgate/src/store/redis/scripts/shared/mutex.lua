-- What the mutex scripts share.
--
-- The mutex is a string that expires with its lease (a released one: after kept_ms):
--   1      state:  h held, nobody waits · q held, some may be in the queue · w held, some want to hear when it is free
--                  (and some may be in the queue) · r released; the queue is empty
--   2-33   token:  who holds it, or who released it
--   34-65  before: who released it before that, in good order; dashes: nobody
--   66-    fence:  the highest given out
-- The queue is a sorted set, token → ticket. It expires when nobody in it has said a word for queue_kept_ms.
local NOBODY = '--------------------------------'
local FENCE_BLOCK = 64
local QUEUE_KEPT_MS = 600000
local HELD, QUEUED, WATCHED, RELEASED = 104, 113, 119, 114

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function number(value)
  return string.format('%.0f', value)
end

-- Writes who holds the mutex; returns the first and the last of its fences.
local function give(mutex, state, token, before, above, now, fences, lease_ms)
  local first = above + 1
  if first < now then
    first = now
  end
  local last = first + fences - 1
  redis.call('SET', mutex, state .. token .. before .. number(last), 'PX', lease_ms)
  return first, last
end

-- Gives the mutex to the first waiter who is there, and tells it. Returns the waiter, or nil. Nobody tells `asking`: the
-- answer to its call does.
local function give_to_next(mutex, queue, state, before, above, now, house, asking)
  while true do
    local waiter = redis.call('ZPOPMIN', queue)[1]
    if not waiter then
      return nil
    end
    local last = math.max(above + 1, now) + FENCE_BLOCK - 1
    local is_there = waiter == asking
    if not is_there then
      local message = waiter .. ' ' .. number(last) .. ' ' .. number(now) .. ' ' .. house.claim_ms .. ' ' .. mutex
      local heard = redis.call('PUBLISH', house.ears .. string.sub(waiter, 1, 16), message)
      is_there = heard > 0 or house.skip ~= '1'
    end
    if is_there then
      give(mutex, state, waiter, before, above, now, FENCE_BLOCK, house.claim_ms)
      return waiter
    end
  end
end

local function lease_left_us(mutex)
  return math.max(redis.call('PTTL', mutex), 0) * 1000
end

-- Lets the token into the queue (where it may be already), and says where it stands.
local function join(mutex, queue, token, old_ticket, state)
  local now = now_us()
  local ticket = tonumber(redis.call('ZSCORE', queue, token) or nil)
  if not ticket then
    ticket = old_ticket
    if ticket == 0 then
      local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
      ticket = math.max(now, (tonumber(last) or 0) + 1)
    end
    redis.call('ZADD', queue, number(ticket), token)
  end
  if state == HELD then
    redis.call('SETRANGE', mutex, 0, 'q')
  end
  redis.call('PEXPIRE', queue, QUEUE_KEPT_MS)
  return {'queued', ticket, redis.call('ZRANK', queue, token), lease_left_us(mutex), now}
end

-- Takes the mutex, whose value was just read, if it can be had; otherwise does what if_taken says. One who watches is
-- rarely alone: others of its process may want to hear when it gives the mutex back.
local function take(value, mutex, queue, token, lease_ms, fences, fence_seen, if_taken, old_ticket, house)
  if not value and redis.call('EXISTS', queue) == 1 then
    give_to_next(mutex, queue, 'q', NOBODY, fence_seen, now_us(), house, token)
    value = redis.call('GET', mutex)
  end
  local letter = if_taken == 'watch' and 'w' or 'h'
  if not value then
    local first, last = give(mutex, letter, token, NOBODY, fence_seen, now_us(), fences, lease_ms)
    return {'granted', first, last, lease_ms * 1000}
  end
  local state = string.byte(value)
  local holder = string.sub(value, 2, 33)
  if state == RELEASED then
    if holder == token or string.sub(value, 34, 65) == token then
      return {'taken', 0}
    end
    local above = tonumber(string.sub(value, 66))
    if above < fence_seen then
      above = fence_seen
    end
    local first, last = give(mutex, letter, token, holder, above, now_us(), fences, lease_ms)
    return {'granted', first, last, lease_ms * 1000}
  end
  if holder == token then
    local last = tonumber(string.sub(value, 66))
    return {'granted', last - fences + 1, last, lease_left_us(mutex)}
  end
  if string.sub(value, 34, 65) == token then
    return {'taken', 0}
  end
  if if_taken == 'queue' then
    return join(mutex, queue, token, old_ticket, state)
  end
  if if_taken == 'watch' and state ~= WATCHED then
    redis.call('SETRANGE', mutex, 0, 'w')
  end
  return {'taken', lease_left_us(mutex)}
end

-- The mutex is nobody's any more: the next waiter's, or free.
local function pass_on(mutex, queue, state, token, before, fence, kept_ms, house)
  local letter = 'q'
  if state == WATCHED then
    letter = 'w'
  end
  if state ~= HELD and give_to_next(mutex, queue, letter, token, fence, now_us(), house) then
    return
  end
  redis.call('SET', mutex, 'r' .. token .. before .. number(fence), 'PX', kept_ms)
  if state == WATCHED then
    redis.call('PUBLISH', house.freed, mutex)
  end
end
