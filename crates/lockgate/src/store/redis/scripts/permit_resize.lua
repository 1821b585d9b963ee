-- Sets how many permits a semaphore has, whatever its users say; or lets them say it again when it is not in use.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  size           see shared/pool_state.lua
-- KEYS[5]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  total          how many, or nothing: they say it
-- ARGV[2]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'resized'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local quarantine = KEYS[5]
local total = ARGV[1]
local run = ARGV[2]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, '')
if total == '' then
  redis.call('DEL', size)
  pool.is_set = 0
else
  redis.call('SET', size, total)
  pool.total, pool.is_set = tonumber(total), 1
end
-- One that nobody has used lately has only its size.
pool.is_changed = pool.is_kept
notice(pool)
return finish(pool, {'resized'})
