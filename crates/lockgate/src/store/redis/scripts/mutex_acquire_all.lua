-- Gives several mutexes to their tokens, if all of them can be had; otherwise none.
--
-- KEYS[..] keys           the mutexes, then their queues: see shared/hand_over.lua; all of one partition. Where there is a
--                         quarantine, its key is the last: see shared/quarantine.lua
-- ARGV[..] wishes         four for each mutex: token, lease_ms, fences, fence_seen, see mutex_acquire.lua. Where there is a
--                         quarantine, the run is the last: see shared/run.lua
--
-- Returns  {'granted', …}   three for each mutex: first_fence, last_fence, lease_left_us; also when the tokens held all of
--                           them before
--          {'taken'}        at least one of them
local keys = KEYS
local wishes = ARGV

local quarantine = keys[#keys]
local run = wishes[#wishes]

-- include the house's rules
-- include shared/quarantine.lua
-- include shared/hand_over.lua
-- include shared/take.lua

local count = math.floor(#keys / 2)
local values, found = {}, {mine = 0, free = 0, late = 0, taken = 0}
for i = 1, count do
  local token, fence_seen = wishes[4 * i - 3], tonumber(wishes[4 * i])
  values[i] = noticed(redis.call('GET', keys[i]), keys[i], keys[count + i], fence_seen, token)
  local how = how_it_stands(values[i], token)
  found[how] = found[how] + 1
end
if found.mine < count and (found.free < count or quarantined_us > 0) then
  return {'taken'}
end
local answer = {'granted'}
for i = 1, count do
  local token, lease_ms, fences, fence_seen = unpack(wishes, 4 * i - 3, 4 * i)
  local grant = take(values[i], keys[i], keys[count + i], token, lease_ms, fences, tonumber(fence_seen), 'leave')
  for part = 2, 4 do
    answer[#answer + 1] = grant[part]
  end
end
return answer
