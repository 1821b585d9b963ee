-- Lets a token keep only so many permits of those that it holds, and gives the others to the first waiters who are there, or
-- to nobody.
--
-- KEYS[1]  key            see shared/pool.lua
-- KEYS[2]  holders        see shared/pool.lua
-- KEYS[3]  queue          see shared/pool.lua
-- ARGV[1]  token
-- ARGV[2]  permits        how many it keeps
--
-- Returns  {'shrunk'}     also when it holds no more
--          {'not-held'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local token = ARGV[1]
local permits = tonumber(ARGV[2])

-- include the house's rules
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, nil, token)
local is_held = holds(pool, token)
local more = is_held and permits_of(pool.mine) - permits
if is_held and more > 0 then
  set_entry(pool, token, permits, string.match(pool.mine, '%d+$'))
  pool.taken = pool.taken - more
  pool.is_changed = true
end
notice(pool, token)
if is_held then
  return finish(pool, {'shrunk'})
end
return finish(pool, {'not-held'})
