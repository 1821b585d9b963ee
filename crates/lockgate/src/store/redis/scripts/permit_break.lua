-- Takes the permits of one token away, or those of all, and gives them to the first waiters who are there, or to nobody.
--
-- KEYS[1]  key            see shared/pool.lua
-- KEYS[2]  holders        see shared/pool.lua
-- KEYS[3]  queue          see shared/pool.lua
-- KEYS[4]  size           see shared/pool.lua
-- ARGV[1]  token          or nothing: all
--
-- Returns  {'broken', fence}   above all that were given out before
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local token = ARGV[1]

-- include the house's rules
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, token)
local fence = reserve(pool, 0, 1)
if token == '' then
  repeat
    local all = redis.call('ZRANGE', holders, 0, SWEEP - 1)
    take_back(pool, all)
  until #all == 0
elseif holds(pool, token) then
  take_back(pool, {token})
end
notice(pool, token)
return finish(pool, {'broken', fence})
