-- Gives the mutex back, if the token holds it: to the first waiter who is there, or to nobody. A token that waits leaves
-- the queue.
--
-- KEYS[1]  mutex          see shared/hand_over.lua
-- KEYS[2]  queue          see shared/hand_over.lua
-- KEYS[3]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token
-- ARGV[2]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'released'}   also when the token released it before, and nobody else since
--          {'left'}       it was waiting, and is no longer
--          {'not-held'}
local mutex = KEYS[1]
local queue = KEYS[2]
local quarantine = KEYS[3]
local token = ARGV[1]
local run = ARGV[2]

-- include the house's rules
local value = redis.call('GET', mutex)
local holds = value and string.sub(value, 2, 33) == token
-- The common case, before anything is made that only the others need: nobody waits.
if holds and string.byte(value) == 104 then
  redis.call('SET', mutex, 'r' .. string.sub(value, 2), 'PX', kept_ms)
  return {'released'}
end

-- include shared/quarantine.lua
-- include shared/hand_over.lua
-- include shared/pass_on.lua

if holds then
  local state, before, fence = string.byte(value), string.sub(value, 34, 65), tonumber(string.sub(value, 66))
  if state ~= RELEASED then
    pass_on(mutex, queue, state, token, before, fence)
  end
  return {'released'}
end
if value and string.sub(value, 34, 65) == token then
  return {'released'}
end
local has_left = redis.call('LREM', queue, 1, token) == 1
if not value and quarantined_us == 0 then
  -- The holder's lease ran out.
  give_to_next(mutex, queue, 'q', NOBODY, 0, now_us())
end
if has_left then
  return {'left'}
end
return {'not-held'}
