-- How a mutex is asked for. Shared by the scripts that do; needs shared/hand_over.lua and
-- shared/quarantine.lua.
local QUEUE_KEPT_MS = 86400000

-- How far from its end a queue is searched for a token that asks for the first time: a call that is sent again comes
-- soon after the first.
local RECENT = 128

local function lease_left_us(mutex)
  return math.max(redis.call('PTTL', mutex), 0) * 1000
end

-- How long the mutex cannot be had, if its holder does nothing.
local function taken_us(mutex)
  if quarantined_us > 0 then
    return quarantined_us
  end
  return lease_left_us(mutex)
end

-- Lets the token into the queue (where it may be already), and says where it stands. One that was in it before and is no
-- longer was at its head, so that is where it goes.
local function join(mutex, queue, token, again, state)
  local ahead
  if again then
    ahead = redis.call('LPOS', queue, token)
    if not ahead then
      redis.call('LPUSH', queue, token)
      ahead = 0
    end
    redis.call('PEXPIRE', queue, QUEUE_KEPT_MS)
  else
    ahead = redis.call('LPOS', queue, token, 'RANK', -1, 'MAXLEN', RECENT)
    if not ahead then
      ahead = redis.call('RPUSH', queue, token) - 1
      if ahead == 0 then
        redis.call('PEXPIRE', queue, QUEUE_KEPT_MS)
      end
    end
  end
  if state == HELD then
    redis.call('SETRANGE', mutex, 0, 'q')
  end
  return {'queued', ahead, taken_us(mutex), now_us()}
end

-- The mutex' value, which was just read, after what the next caller notices: that a lease has run out.
local function noticed(value, mutex, queue, fence_seen, asking)
  -- Those who came during a quarantine wait for a mutex that was released before it, or in it.
  local may_have_queue = not value or quarantine_us and string.byte(value) == RELEASED
  if may_have_queue and quarantined_us == 0 and redis.call('EXISTS', queue) == 1 then
    local released_by = value and string.sub(value, 2, 33) or NOBODY
    local above = value and math.max(tonumber(string.sub(value, 66)), fence_seen) or fence_seen
    give_to_next(mutex, queue, 'q', released_by, above, now_us(), asking)
    return redis.call('GET', mutex)
  end
  return value
end

-- How a mutex of that value stands for a token: it is mine; the call is late, because the token has released it; free; taken.
local function how_it_stands(value, token)
  if not value then
    return 'free'
  end
  local state, holder = string.byte(value), string.sub(value, 2, 33)
  if holder == token and state ~= RELEASED then
    return 'mine'
  elseif holder == token or string.sub(value, 34, 65) == token then
    return 'late'
  end
  return state == RELEASED and 'free' or 'taken'
end

-- Takes the mutex, whose value was just read, if it can be had; otherwise does what if_taken says. One who watches is
-- rarely alone: others of its process may want to hear when it gives the mutex back.
local function take(value, mutex, queue, token, lease_ms, fences, fence_seen, if_taken)
  value = noticed(value, mutex, queue, fence_seen, token)
  local how = how_it_stands(value, token)
  if how == 'mine' then
    local last = tonumber(string.sub(value, 66))
    return {'granted', last - fences + 1, last, lease_left_us(mutex)}
  elseif how == 'late' then
    return {'taken', 0}
  elseif how == 'free' and quarantined_us == 0 then
    local above = value and tonumber(string.sub(value, 66)) or 0
    local before = value and string.sub(value, 2, 33) or NOBODY
    local first = math.max(above + 1, fence_seen + 1, now_us())
    local last = first + fences - 1
    local letter = if_taken == 'watch' and 'w' or 'h'
    redis.call('SET', mutex, letter .. token .. before .. string.format('%.0f', last), 'PX', lease_ms)
    return {'granted', first, last, lease_ms * 1000}
  end
  local state = value and string.byte(value)
  if if_taken == 'queue' or if_taken == 'again' then
    return join(mutex, queue, token, if_taken == 'again', state)
  end
  if if_taken == 'watch' and state ~= WATCHED and how == 'taken' then
    redis.call('SETRANGE', mutex, 0, 'w')
  end
  return {'taken', taken_us(mutex)}
end
