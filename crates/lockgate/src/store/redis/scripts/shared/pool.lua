-- How a pool of permits is kept, and how its permits go to those who wait. Shared by the permit scripts; needs the house's
-- rules.
--
-- A pool is three keys that end together: kept_ms after the last lease, or a day after the last change if somebody waits. A
-- fourth is there when the number of a semaphore's permits is set, and does not end.
--   pool     hash    s       -> packed: total, is_set (whether that is set, 1 or 0), taken, fence (the highest given out),
--                               due_us (when a lease ends, or earlier; 0: nobody holds any); then, each after a blank,
--                               the tokens that gave permits back in good order last, the latest first
--                    <token> -> of a holder h<permits> <last fence>, of a waiter w<permits>
--                    e<ear>  -> how many waiters hear by it
--   holders  zset    tokens, by the time when their leases end, in microseconds
--   queue    zset    tokens, by the numbers of their places
--   size     string  how many permits there are, if that is set
-- One hash, so that a call reads how the pool stands and what the token has in it in one go. Places have numbers, because the
-- place of one in the middle of a list takes a walk.
local PACKING = '>dBddd'
local FENCE_BLOCK, RELEASES_KEPT, QUEUE_KEPT_MS = 64, 8, 86400000
-- How many ended leases one call notices at the most, and how many in one go.
local MAX_SWEEP, SWEEP = 10000, 1000

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function text(number)
  return string.format('%.0f', number)
end

-- The pool, and in it what the token has.
local function pool_of(key, holders, queue, size, token)
  local read = redis.call('HMGET', key, 's', token)
  local pool = {key = key, holders = holders, queue = queue, mine = read[2]}
  if read[1] then
    local rest
    pool.is_kept = true
    pool.total, pool.is_set, pool.taken, pool.fence, pool.due_us, rest = struct.unpack(PACKING, read[1])
    pool.released = string.sub(read[1], rest)
    pool.waiting = redis.call('ZCARD', queue)
  else
    local set = size and redis.call('GET', size)
    pool.total, pool.is_set, pool.taken, pool.fence, pool.due_us = tonumber(set or 0), set and 1 or 0, 0, 0, 0
    pool.released, pool.waiting = '', 0
    -- They end together, unless somebody has deleted one of them by hand.
    redis.call('DEL', holders, queue)
  end
  return pool
end

-- Writes down how the pool stands, if that has changed, and for how long all of it is kept; gives the answer back.
local function finish(pool, answer)
  if not pool.is_changed then
    return answer
  end
  local last = redis.call('ZRANGE', pool.holders, -1, -1, 'WITHSCORES')[2]
  local ends_ms = math.ceil(math.max(last or 0, now) / 1000) + kept_ms
  if not last then
    pool.due_us = 0
  end
  redis.call('HSET', pool.key, 's', struct.pack(PACKING, pool.total, pool.is_set, pool.taken, pool.fence, pool.due_us)
    .. pool.released)
  if pool.waiting > 0 then
    ends_ms = math.max(ends_ms, math.ceil(now / 1000) + QUEUE_KEPT_MS)
    redis.call('PEXPIREAT', pool.queue, text(ends_ms))
  end
  if last then
    redis.call('PEXPIREAT', pool.holders, text(ends_ms))
  end
  redis.call('PEXPIREAT', pool.key, text(ends_ms))
  return answer
end

local function permits_of(entry)
  return tonumber(string.match(entry, '^%a(%d+)'))
end

local function reserve(pool, seen, fences)
  local first = math.max(pool.fence + 1, seen + 1, now)
  pool.fence = first + fences - 1
  pool.is_changed = true
  return first, pool.fence
end

-- How much is left of the token's lease, in microseconds; not above 0: it holds nothing.
local function lease_left_of(pool, token)
  return (redis.call('ZSCORE', pool.holders, token) or 0) - now
end

-- How much is left of the lease that ends first; without a holder, somebody could have it for the claim lease.
local function lease_left(pool)
  local first = redis.call('ZRANGE', pool.holders, 0, 0, 'WITHSCORES')[2]
  return math.max((first or now + claim_ms * 1000) - now, 0)
end

local function begin_lease(pool, token, lease_ms)
  local ends_us = now + lease_ms * 1000
  redis.call('ZADD', pool.holders, text(ends_us), token)
  if pool.due_us == 0 or ends_us < pool.due_us then
    pool.due_us = ends_us
  end
  pool.is_changed = true
end

local function set_entry(pool, token, permits, last_fence)
  redis.call('HSET', pool.key, token, 'h' .. text(permits) .. ' ' .. text(last_fence))
end

local function hold(pool, token, permits, last_fence, lease_ms)
  set_entry(pool, token, permits, last_fence)
  begin_lease(pool, token, lease_ms)
  pool.taken = pool.taken + permits
end

-- Takes what these tokens hold back.
local function take_back(pool, tokens)
  if #tokens == 0 then
    return
  end
  for _, entry in ipairs(redis.call('HMGET', pool.key, unpack(tokens))) do
    pool.taken = pool.taken - permits_of(entry)
  end
  redis.call('HDEL', pool.key, unpack(tokens))
  redis.call('ZREM', pool.holders, unpack(tokens))
  pool.is_changed = true
end

local function count_waiter(pool, token, more)
  local ear = 'e' .. string.sub(token, 1, 16)
  if redis.call('HINCRBY', pool.key, ear, more) == 0 then
    redis.call('HDEL', pool.key, ear)
  end
  pool.waiting = pool.waiting + more
  pool.is_changed = true
end

local function leave_queue(pool, token)
  redis.call('ZREM', pool.queue, token)
  redis.call('HDEL', pool.key, token)
  count_waiter(pool, token, -1)
end

-- Says something to a waiter; whether it counts as heard. Nobody tells `asking`: the answer to its call does.
local function tell(waiter, asking, message)
  return waiter == asking or redis.call('PUBLISH', ears .. string.sub(waiter, 1, 16), message) > 0 or not skips_absent
end

-- Gives permits to the first waiters who are there, to each as many as it wants, as long as there are enough. One who wants
-- more than there will ever be must not stand in the way.
local function serve(pool, asking)
  while pool.waiting > 0 do
    local waiter = redis.call('ZRANGE', pool.queue, 0, 0)[1]
    local permits = permits_of(redis.call('HGET', pool.key, waiter))
    local is_possible = permits <= pool.total
    if is_possible and permits > pool.total - pool.taken then
      return
    end
    leave_queue(pool, waiter)
    local last = math.max(pool.fence + 1, now) + FENCE_BLOCK - 1
    if not is_possible then
      tell(waiter, asking, waiter)
    elseif tell(waiter, asking, string.format('%s %.0f %.0f %s %s', waiter, last, now, claim_ms, pool.key)) then
      pool.fence = last
      hold(pool, waiter, permits, last, claim_ms)
    end
  end
end

-- What every call notices first: leases that have run out. Then what the token has is read again.
local function notice(pool, token, asking)
  local swept = 0
  while pool.due_us > 0 and pool.due_us <= now and swept < MAX_SWEEP do
    local ended = redis.call('ZRANGEBYSCORE', pool.holders, '-inf', text(now), 'LIMIT', 0, SWEEP)
    take_back(pool, ended)
    swept = swept + #ended
    pool.due_us = tonumber(redis.call('ZRANGE', pool.holders, 0, 0, 'WITHSCORES')[2] or 0)
    pool.is_changed = true
  end
  serve(pool, asking)
  if pool.is_changed then
    pool.mine = redis.call('HGET', pool.key, token)
  end
end

-- Whether the token holds permits. Its lease may be one of very many that have ended, and not be noticed yet.
local function holds(pool, token)
  return pool.mine and string.byte(pool.mine) == 104 and lease_left_of(pool, token) > 0
end

local function has_released(pool, token)
  return string.find(pool.released, ' ' .. token, 1, true)
end
