-- Sets how many permits a semaphore has, whatever its users say; or lets them say it again when it is not in use.
--
-- KEYS[1]  key            see shared/pool.lua
-- KEYS[2]  holders        see shared/pool.lua
-- KEYS[3]  queue          see shared/pool.lua
-- KEYS[4]  size           see shared/pool.lua
-- ARGV[1]  total          how many, or nothing: they say it
--
-- Returns  {'resized'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local total = ARGV[1]

-- include the house's rules
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
notice(pool, '')
return finish(pool, {'resized'})
