-- Gives permits to a token when so many are free and nobody waits; otherwise does what if_taken says.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  size           see shared/pool_state.lua
-- KEYS[5]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token          see mutex_acquire.lua
-- ARGV[2]  permits        how many are wanted
-- ARGV[3]  of             how many there are, if that is for the users to say
-- ARGV[4]  lease_ms
-- ARGV[5]  fences         how many to reserve
-- ARGV[6]  fence_seen     the highest fence that the caller knows of, or 0
-- ARGV[7]  if_taken       leave; queue; again: it is or was in the queue
-- ARGV[8]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'granted', first_fence, last_fence, lease_left_us}   also when the token held them before: a re-sent call
--                                                                changes nothing
--          {'taken', lease_left_us}   0 left: the token has released its permits; the call is late
--          {'queued', ahead, lease_left_us, now_us}
--          {'never', total}           there are fewer
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local quarantine = KEYS[5]
local token = ARGV[1]
local permits = tonumber(ARGV[2])
local of = tonumber(ARGV[3])
local lease_ms = ARGV[4]
local fences = ARGV[5]
local fence_seen = tonumber(ARGV[6])
local if_taken = ARGV[7]
local run = ARGV[8]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
local read = redis.call('HMGET', key, 's', token, 'r')
-- The common case, before anything is made that only the others need: nobody waits, no lease has ended, there are enough.
local state, released = read[1], read[3] or ''
if state and not read[2] and quarantined_us == 0 then
  local total, is_set, taken, fence, due_us, latest_us, until_ms, waiting, place = struct.unpack(PACKING, state)
  if is_set == 0 and taken == 0 then
    total = of
  end
  if waiting == 0 and (taken == 0 or due_us > now) and permits <= total - taken
      and not string.find(released, token, 1, true) then
    local first = math.max(fence + 1, fence_seen + 1, now)
    local last = first + fences - 1
    local ends_us = now + lease_ms * 1000
    if taken == 0 or ends_us < due_us then
      due_us = ends_us
    end
    if ends_us > latest_us then
      latest_us = ends_us
    end
    redis.call('ZADD', holders, ends_us, token)
    local ends_ms = math.ceil(latest_us / 1000) + kept_ms
    local is_moved = until_ms < ends_ms
    if is_moved then
      until_ms = ends_ms + kept_ms
      redis.call('PEXPIREAT', key, until_ms)
    end
    if is_moved or taken == 0 then
      redis.call('PEXPIREAT', holders, until_ms)
    end
    redis.call('HSET', key, 's', struct.pack(PACKING, total, is_set, taken + permits, last, due_us, latest_us, until_ms, 0,
      place), token, struct.pack(HOLDER, HELD, permits, last, ends_us))
    return {'granted', first, last, lease_ms * 1000}
  end
end

-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, token, read)
notice(pool, token)
local held, last_held, ends_us = holds(pool)
if held then
  return finish(pool, {'granted', last_held - fences + 1, last_held, ends_us - now})
end
local waiter = waits(pool)
if pool.mine and not waiter then
  take_back(pool, {token}, {pool.mine})
end
if string.find(released, token, 1, true) then
  return finish(pool, {'taken', 0})
end
if pool.is_set == 0 and pool.taken == 0 and pool.waiting == 0 then
  pool.total = of
end
if permits > pool.total then
  if waiter then
    leave_queue(pool, waiter)
  end
  return finish(pool, {'never', pool.total})
end
-- One that was in the queue and is no longer was at its head.
local was_first = if_taken == 'again' and not waiter
if quarantined_us == 0 and (pool.waiting == 0 or was_first) and permits <= pool.total - pool.taken then
  local first, last = reserve(pool, fence_seen, fences)
  hold(pool, token, permits, last, lease_ms)
  return finish(pool, {'granted', first, last, lease_ms * 1000})
end
-- How much is left of the lease that ends first; without a holder, somebody could have it for the claim lease.
local lease_left_us = quarantined_us
if lease_left_us == 0 then
  local due_us = pool.due_us
  if due_us ~= pool.latest_us then
    due_us = redis.call('ZRANGE', holders, 0, 0, 'WITHSCORES')[2] or 0
  end
  lease_left_us = pool.taken == 0 and claim_ms * 1000 or math.max(due_us - now, 0)
end
if if_taken == 'leave' then
  return finish(pool, {'taken', lease_left_us})
end
local ahead
if waiter then
  ahead = redis.call('ZRANK', queue, waiter)
else
  local head = was_first and redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
  pool.place = pool.place + 1
  redis.call('ZADD', queue, head and head - 1 or pool.place, string.format('%s %.0f', token, permits))
  set_entry(pool, token, string.format('w%.0f', permits))
  ahead = was_first and 0 or pool.waiting
  pool.has_new_queue = pool.has_new_queue or pool.waiting == 0
  count_waiter(pool, token, 1)
end
-- Who asks is still there: all is kept for another day.
pool.is_changed = true
return finish(pool, {'queued', ahead, lease_left_us, now})
