-- Tells how the pool stands.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  size           see shared/pool_state.lua
-- KEYS[5]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  listed         how many holders and how many waiters to list at the most
-- ARGV[2]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'pool', total, taken, holding, fence, waiting, holders, …}   a total of 0: it is for its users to say; then,
--              of the first so many holders: token permits lease_left_us; then of the first waiters: token permits
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local size = KEYS[4]
local quarantine = KEYS[5]
local listed = ARGV[1]
local run = ARGV[2]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, size, '')
notice(pool)
local is_in_use = pool.taken > 0 or pool.waiting > 0
local total = (pool.is_set == 1 or is_in_use) and pool.total or 0
local first = redis.call('ZRANGE', holders, 0, listed - 1, 'WITHSCORES')
local answer = {'pool', total, pool.taken, redis.call('ZCARD', holders), pool.fence, pool.waiting, #first / 2}
for i = 1, #first, 2 do
  local _, permits = struct.unpack(HOLDER, redis.call('HGET', key, first[i]))
  answer[#answer + 1] = string.format('%s %.0f %.0f', first[i], permits, math.max(first[i + 1] - now, 0))
end
for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, listed - 1)) do
  answer[#answer + 1] = waiter
end
return finish(pool, answer)
