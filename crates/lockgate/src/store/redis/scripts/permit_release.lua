-- Gives all permits of a token back: to the first waiters who are there, or to nobody. A token that waits leaves the queue.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token
-- ARGV[2]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'released'}   also when the token is one of those who released last
--          {'left'}       it was waiting, and is no longer
--          {'not-held'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local quarantine = KEYS[4]
local token = ARGV[1]
local run = ARGV[2]

-- include the house's rules
-- include shared/pool_state.lua
local read = redis.call('HMGET', key, 's', token, 'r')
-- The common case, before anything is made that only the others need: nobody waits, and no lease has ended.
local state, mine, released = read[1], read[2], read[3] or ''
if state and mine and string.byte(mine) == HELD then
  local total, is_set, taken, fence, due_us, latest_us, until_ms, waiting, place = struct.unpack(PACKING, state)
  if waiting == 0 and due_us > now then
    local _, permits, _, ends_us = struct.unpack(HOLDER, mine)
    taken = taken - permits
    redis.call('ZREM', holders, token)
    redis.call('HDEL', key, token)
    if taken == 0 then
      due_us, latest_us = 0, 0
    elseif ends_us == latest_us then
      latest_us = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
    end
    local ends_ms = math.ceil(math.max(latest_us, now) / 1000) + kept_ms
    if until_ms < ends_ms or until_ms > ends_ms + kept_ms then
      until_ms = ends_ms + kept_ms
      redis.call('PEXPIREAT', key, until_ms)
      redis.call('PEXPIREAT', holders, until_ms)
    end
    redis.call('HSET', key, 's', struct.pack(PACKING, total, is_set, taken, fence, due_us, latest_us, until_ms, 0, place),
      'r', ' ' .. token .. string.sub(released, 1, 33 * (RELEASES_KEPT - 1)))
    return {'released'}
  end
end

-- include shared/quarantine.lua
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, nil, token, read)
local waiter = waits(pool)
if waiter then
  leave_queue(pool, waiter)
elseif holds(pool) then
  take_back(pool, {token}, {pool.mine})
  released = ' ' .. token .. string.sub(released, 1, 33 * (RELEASES_KEPT - 1))
  set_entry(pool, 'r', released)
end
notice(pool)
if string.find(released, token, 1, true) then
  return finish(pool, {'released'})
elseif waiter then
  return finish(pool, {'left'})
end
return finish(pool, {'not-held'})
