-- Lets the leases of several holders of permits begin anew, each if its token still holds some. A lease that ran out stays lost.
--
-- KEYS[..] keys           three for each renewal: key, holders and queue, see shared/pool_state.lua; all of one partition. Where
--                         there is a quarantine, its key is the last: see shared/quarantine.lua
-- ARGV[..] renewals       three for each: token, lease_ms, fences (how many more to reserve, or 0). Where there is a
--                         quarantine, the run is the last: see shared/run.lua
--
-- Returns  {'renewed', …}  two for each: the token's highest fence, or 0 if it holds nothing; and whether somebody waits
--                          who hears by another ear, or more are taken than there are (1 or 0)
local keys = KEYS
local renewals = ARGV
local quarantine = keys[#keys]
local run = renewals[#renewals]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/pool_state.lua
-- include shared/pool.lua

local answer = {'renewed'}
for i = 1, #keys - 2, 3 do
  local token, fences = renewals[i], tonumber(renewals[i + 2])
  local pool = pool_of(keys[i], keys[i + 1], keys[i + 2], nil, token)
  notice(pool)
  local permits, last, ended_us = holds(pool)
  local is_waited_for = false
  if permits then
    if fences > 0 then
      last = select(2, reserve(pool, 0, fences))
    end
    hold(pool, token, permits, last, renewals[i + 1], ended_us)
    local ear = 'e' .. string.sub(token, 1, 16)
    local mine = pool.ears[ear] or pool.waiting > 0 and redis.call('HGET', pool.key, ear) or 0
    is_waited_for = pool.waiting > tonumber(mine) or pool.taken > pool.total
  end
  answer[#answer + 1] = last or 0
  answer[#answer + 1] = is_waited_for and 1 or 0
  finish(pool)
end
return answer
