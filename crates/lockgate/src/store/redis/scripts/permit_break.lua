-- Takes the permits of one token away, or those of all, and gives them to the first waiters who are there, or to nobody.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  size           see shared/pool_state.lua
-- KEYS[5]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token          or nothing: all
-- ARGV[2]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'broken', fence}   above all that were given out before
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local quarantine = KEYS[5]
local token = ARGV[1]
local run = ARGV[2]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, token)
local fence = reserve(pool, 0, 1)
if token == '' then
  local all = redis.call('ZRANGE', holders, 0, SWEEP - 1)
  while #all > 0 do
    take_back(pool, all)
    all = redis.call('ZRANGE', holders, 0, SWEEP - 1)
  end
elseif holds(pool) then
  take_back(pool, {token}, {pool.mine})
end
notice(pool)
return finish(pool, {'broken', fence})
