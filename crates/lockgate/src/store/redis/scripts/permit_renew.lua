-- Lets the leases of several holders of permits begin anew, each if its token still holds some. A lease that ran out stays lost.
--
-- KEYS[..] keys           three for each renewal: key, holders and queue, see shared/pool.lua; all of one partition
-- ARGV[..] renewals       three for each: token, lease_ms, fences (how many more to reserve, or 0)
--
-- Returns  {'renewed', …}  two for each: the token's highest fence, or 0 if it holds nothing; and whether somebody waits
--                          who hears by another ear (1 or 0)
local keys = KEYS
local renewals = ARGV

-- include the house's rules
-- include shared/pool.lua

local function renew(pool, token, lease_ms, fences)
  local last = tonumber(string.match(pool.mine, '%d+$'))
  if fences > 0 then
    last = select(2, reserve(pool, 0, fences))
    set_entry(pool, token, permits_of(pool.mine), last)
  end
  begin_lease(pool, token, lease_ms)
  local mine = pool.waiting > 0 and redis.call('HGET', pool.key, 'e' .. string.sub(token, 1, 16)) or 0
  return last, pool.waiting > tonumber(mine) and 1 or 0
end

local answer = {'renewed'}
for i = 1, #keys, 3 do
  local token = renewals[i]
  local pool = pool_of(keys[i], keys[i + 1], keys[i + 2], nil, token)
  notice(pool, token)
  local fence, others_wait = 0, 0
  if holds(pool, token) then
    fence, others_wait = renew(pool, token, renewals[i + 1], tonumber(renewals[i + 2]))
  end
  answer[#answer + 1] = fence
  answer[#answer + 1] = others_wait
  finish(pool)
end
return answer
