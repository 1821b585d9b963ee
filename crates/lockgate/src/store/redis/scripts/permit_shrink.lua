-- Lets a token keep only so many permits of those that it holds, and gives the others to the first waiters who are there, or
-- to nobody.
--
-- KEYS[1]  key            see shared/pool_state.lua
-- KEYS[2]  holders        see shared/pool_state.lua
-- KEYS[3]  queue          see shared/pool_state.lua
-- KEYS[4]  quarantine     see shared/quarantine.lua; only where there is one
-- ARGV[1]  token
-- ARGV[2]  permits        how many it keeps
-- ARGV[3]  run            see shared/run.lua; only where there is a quarantine
--
-- Returns  {'shrunk'}     also when it holds no more
--          {'not-held'}
local key = KEYS[1]
local holders = KEYS[2]
local queue = KEYS[3]
local quarantine = KEYS[4]
local token = ARGV[1]
local permits = tonumber(ARGV[2])
local run = ARGV[3]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
-- include shared/pool.lua

local pool = pool_of(key, holders, queue, nil, token)
local held, last_fence, ends_us = holds(pool)
if held and permits < held then
  set_entry(pool, token, struct.pack(HOLDER, HELD, permits, last_fence, ends_us))
  pool.taken = pool.taken - held + permits
end
notice(pool)
if held then
  return finish(pool, {'shrunk'})
end
return finish(pool, {'not-held'})
