-- Gives permits to a token when so many are free and nobody waits; otherwise does what if_taken says.
--
-- KEYS[1]  key            see shared/pool.lua
-- KEYS[2]  holders        see shared/pool.lua
-- KEYS[3]  queue          see shared/pool.lua
-- KEYS[4]  size           see shared/pool.lua
-- ARGV[1]  token          see mutex_acquire.lua
-- ARGV[2]  permits        how many are wanted
-- ARGV[3]  of             how many there are, if that is for the users to say
-- ARGV[4]  lease_ms
-- ARGV[5]  fences         how many to reserve
-- ARGV[6]  fence_seen     the highest fence that the caller knows of, or 0
-- ARGV[7]  if_taken       leave; queue; again: it is or was in the queue
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
local token = ARGV[1]
local permits = tonumber(ARGV[2])
local of = tonumber(ARGV[3])
local lease_ms = ARGV[4]
local fences = ARGV[5]
local fence_seen = tonumber(ARGV[6])
local if_taken = ARGV[7]

-- include the house's rules
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, token)
notice(pool, token, token)
if holds(pool, token) then
  local last = tonumber(string.match(pool.mine, '%d+$'))
  return finish(pool, {'granted', last - fences + 1, last, lease_left_of(pool, token)})
end
local waits = pool.mine and string.byte(pool.mine) == 119
if pool.mine and not waits then
  take_back(pool, {token})
end
if has_released(pool, token) then
  return finish(pool, {'taken', 0})
end
if pool.is_set == 0 and pool.taken == 0 and pool.waiting == 0 then
  pool.total = of
end
if permits > pool.total then
  if waits then
    leave_queue(pool, token)
  end
  return finish(pool, {'never', pool.total})
end
-- One that was in the queue and is no longer was at its head.
local was_first = if_taken == 'again' and not waits
if (pool.waiting == 0 or was_first) and permits <= pool.total - pool.taken then
  local first, last = reserve(pool, fence_seen, fences)
  hold(pool, token, permits, last, lease_ms)
  return finish(pool, {'granted', first, last, lease_ms * 1000})
end
if if_taken == 'leave' then
  return finish(pool, {'taken', lease_left(pool)})
end
local ahead = waits and redis.call('ZRANK', queue, token)
if not waits then
  local neighbour = was_first and 0 or -1
  local place = redis.call('ZRANGE', queue, neighbour, neighbour, 'WITHSCORES')[2] or 0
  redis.call('ZADD', queue, text(place + (was_first and -1 or 1)), token)
  redis.call('HSET', key, token, 'w' .. text(permits))
  ahead = was_first and 0 or pool.waiting
  count_waiter(pool, token, 1)
end
-- Who asks is still there: all is kept for another day.
pool.is_changed = true
return finish(pool, {'queued', ahead, lease_left(pool), now})
