-- Gives all permits of a token back: to the first waiters who are there, or to nobody. A token that waits leaves the queue.
--
-- KEYS[1]  key            see shared/pool.lua
-- KEYS[2]  holders        see shared/pool.lua
-- KEYS[3]  queue          see shared/pool.lua
-- ARGV[1]  token
--
-- Returns  {'released'}   also when the token is one of those who released last
--          {'left'}       it was waiting, and is no longer
--          {'not-held'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local token = ARGV[1]

-- include the house's rules
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, nil, token)
local has_left = pool.mine and string.byte(pool.mine) == 119
if has_left then
  leave_queue(pool, token)
elseif holds(pool, token) then
  take_back(pool, {token})
  pool.released = string.sub(' ' .. token .. pool.released, 1, 33 * RELEASES_KEPT)
end
notice(pool, token)
if has_released(pool, token) then
  return finish(pool, {'released'})
elseif has_left then
  return finish(pool, {'left'})
end
return finish(pool, {'not-held'})
