-- How the permits of a pool go to those who wait. Shared by the permit scripts; needs the house's rules,
-- shared/quarantine.lua and shared/pool_state.lua. Few functions, because every call makes all of them.
local FENCE_BLOCK, QUEUE_KEPT_MS = 64, 86400000
-- How many ended leases one call notices at the most, and how many in one go.
local MAX_SWEEP, SWEEP = 10000, 1000

-- The pool, and in it what the token has. `read` is what stands in the hash, if that was read before.
local function pool_of(key, holders, queue, size, token, read)
  read = read or redis.call('HMGET', key, 's', token)
  local total, is_set, taken, fence, due_us, latest_us, until_ms, waiting, place = 0, 0, 0, 0, 0, 0, 0, 0, 0
  if read[1] then
    total, is_set, taken, fence, due_us, latest_us, until_ms, waiting, place = struct.unpack(PACKING, read[1])
  else
    local set = size and redis.call('GET', size)
    if set then
      total, is_set = tonumber(set), 1
    end
    -- They end together, unless somebody has deleted one of them by hand.
    redis.call('DEL', holders, queue)
  end
  return {
    key = key, holders = holders, queue = queue, token = token, mine = read[2], is_kept = read[1], is_changed = false,
    total = total, is_set = is_set, taken = taken, fence = fence, due_us = due_us, latest_us = latest_us,
    until_ms = until_ms, waiting = waiting, place = place, gone = {}, written = {}, ears = {},
  }
end

-- Takes fields out of the hash, then writes others into it: one that is in both is there afterwards.
local function write(pool)
  if #pool.gone > 0 then
    redis.call('HDEL', pool.key, unpack(pool.gone))
    pool.gone = {}
  end
  if #pool.written > 0 then
    redis.call('HSET', pool.key, unpack(pool.written))
    pool.written = {}
  end
end

-- What a field of the hash is from now on, or false: it is gone. It is written when the pool is.
local function set_entry(pool, field, entry)
  local gone, written = pool.gone, pool.written
  if field == pool.token then
    pool.mine = entry
  end
  if entry then
    written[#written + 1] = field
    written[#written + 1] = entry
  else
    gone[#gone + 1] = field
  end
  pool.is_changed = true
  if #written + #gone > SWEEP then
    write(pool)
  end
end

-- Writes down how the pool stands, if that has changed, and for how long all of it is kept; gives the answer back.
local function finish(pool, answer)
  if not pool.is_changed then
    return answer
  end
  for ear, waiters in pairs(pool.ears) do
    set_entry(pool, ear, waiters > 0 and waiters)
  end
  if pool.taken == 0 then
    pool.due_us, pool.latest_us = 0, 0
  elseif pool.has_lost_latest then
    pool.latest_us = tonumber(redis.call('ZRANGE', pool.holders, -1, -1, 'WITHSCORES')[2] or 0)
  end
  local ends_ms = math.ceil(math.max(pool.latest_us, now) / 1000) + kept_ms
  if pool.waiting > 0 then
    ends_ms = math.max(ends_ms, math.ceil(now / 1000) + QUEUE_KEPT_MS)
  end
  -- Later than needed, so that the next calls need not.
  local is_moved = pool.until_ms < ends_ms or pool.until_ms > ends_ms + kept_ms
  if is_moved then
    pool.until_ms = ends_ms + kept_ms
  end
  set_entry(pool, 's', struct.pack(PACKING, pool.total, pool.is_set, pool.taken, pool.fence, pool.due_us, pool.latest_us,
    pool.until_ms, pool.waiting, pool.place))
  write(pool)
  if is_moved then
    redis.call('PEXPIREAT', pool.key, pool.until_ms)
  end
  if pool.taken > 0 and (is_moved or pool.has_new_holders) then
    redis.call('PEXPIREAT', pool.holders, pool.until_ms)
  end
  if pool.waiting > 0 and (is_moved or pool.has_new_queue) then
    redis.call('PEXPIREAT', pool.queue, pool.until_ms)
  end
  return answer
end

local function reserve(pool, seen, fences)
  local first = math.max(pool.fence + 1, seen + 1, now)
  pool.fence = first + fences - 1
  pool.is_changed = true
  return first, pool.fence
end

-- Lets a holder's lease begin; or begin anew: then `ended_us` is when the old one would have ended.
local function hold(pool, token, permits, last_fence, lease_ms, ended_us)
  if not ended_us then
    if pool.taken == 0 then
      pool.due_us, pool.latest_us, pool.has_new_holders = 0, 0, true
    end
    pool.taken = pool.taken + permits
  end
  local ends_us = now + lease_ms * 1000
  redis.call('ZADD', pool.holders, ends_us, token)
  set_entry(pool, token, struct.pack(HOLDER, HELD, permits, last_fence, ends_us))
  -- Of the only holder it is the first.
  if pool.due_us == 0 or ends_us < pool.due_us or pool.taken == permits then
    pool.due_us = ends_us
  end
  if ends_us >= pool.latest_us then
    pool.latest_us = ends_us
  elseif ended_us == pool.latest_us then
    pool.has_lost_latest = true
  end
end

-- Takes what these tokens hold back; what that is may have been read before.
local function take_back(pool, tokens, entries)
  redis.call('ZREM', pool.holders, unpack(tokens))
  for i, entry in ipairs(entries or redis.call('HMGET', pool.key, unpack(tokens))) do
    local _, permits, _, ends_us = struct.unpack(HOLDER, entry)
    pool.taken = pool.taken - permits
    if ends_us >= pool.latest_us then
      pool.has_lost_latest = true
    end
    set_entry(pool, tokens[i], false)
  end
end

-- Counts one more or one less in the queue, by its ear too.
local function count_waiter(pool, token, more)
  local ear = 'e' .. string.sub(token, 1, 16)
  pool.ears[ear] = (pool.ears[ear] or redis.call('HGET', pool.key, ear) or 0) + more
  pool.waiting = pool.waiting + more
end

-- Gives permits to the first waiters who are there, to each as many as it wants, as long as there are enough. One who wants
-- more than there will ever be must not stand in the way. In a quarantine nobody is given anything. Nobody tells `asking`: the
-- answer to its call does.
local function serve(pool, asking)
  while pool.waiting > 0 and quarantined_us == 0 do
    local first = redis.call('ZPOPMIN', pool.queue)
    if not first[1] then
      -- Somebody has deleted it by hand.
      pool.waiting, pool.is_changed = 0, true
      return
    end
    local waiter, permits = string.sub(first[1], 1, 32), tonumber(string.sub(first[1], 34))
    local is_possible = permits <= pool.total
    if is_possible and permits > pool.total - pool.taken then
      redis.call('ZADD', pool.queue, first[2], first[1])
      if pool.waiting == 1 then
        pool.has_new_queue = true
      end
      return
    end
    count_waiter(pool, waiter, -1)
    set_entry(pool, waiter, false)
    local last = math.max(pool.fence + 1, now) + FENCE_BLOCK - 1
    local message = is_possible and string.format('%s %.0f %.0f %s %s', waiter, last, now, claim_ms, pool.key) or waiter
    local is_heard = waiter == asking or redis.call('PUBLISH', ears .. string.sub(waiter, 1, 16), message) > 0
    if is_possible and (is_heard or not skips_absent) then
      pool.fence = last
      hold(pool, waiter, permits, last, claim_ms)
    end
  end
end

-- What every call notices first: leases that have run out. Whoever is first in the queue could not be given what it wants
-- before, so that only a change can be good for it, or the end of a quarantine.
local function notice(pool, asking)
  local swept = 0
  while pool.due_us > 0 and pool.due_us <= now and swept < MAX_SWEEP do
    local ended = redis.call('ZRANGEBYSCORE', pool.holders, '-inf', now, 'LIMIT', 0, SWEEP)
    if #ended > 0 then
      take_back(pool, ended)
    end
    swept = swept + #ended
    pool.due_us = tonumber(redis.call('ZRANGE', pool.holders, 0, 0, 'WITHSCORES')[2] or 0)
    pool.is_changed = true
  end
  if pool.is_changed or quarantine_us then
    serve(pool, asking)
  end
end

-- Whether the call's token holds permits: then how many, its last fence, and when its lease ends. Its lease may be one of very
-- many that have ended, and not be noticed yet.
local function holds(pool)
  if pool.mine and string.byte(pool.mine) == HELD then
    local _, permits, last_fence, ends_us = struct.unpack(HOLDER, pool.mine)
    if ends_us > now then
      return permits, last_fence, ends_us
    end
  end
end

-- The call's token, as it stands in the queue; false, if it does not wait.
local function waits(pool)
  return pool.mine and string.byte(pool.mine) == 119 and pool.token .. ' ' .. string.sub(pool.mine, 2)
end

local function leave_queue(pool, place)
  redis.call('ZREM', pool.queue, place)
  set_entry(pool, pool.token, false)
  count_waiter(pool, pool.token, -1)
end
