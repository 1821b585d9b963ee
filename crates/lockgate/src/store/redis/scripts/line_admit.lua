-- Lets the next ticks admit some of those who wait now, beyond the rate.
--
-- KEYS[1]  line           see shared/line.lua, as the next
-- KEYS[2]  requests
-- ARGV[1]  count          how many
-- ARGV[2]  request        a token: the same again is not noted again
--
-- Returns  one line
--          unknown
--          noted count, again asked
--          not-open how_it_is
local line = KEYS[1]
local requests = KEYS[2]
local count = tonumber(ARGV[1])
local request = ARGV[2]
-- include the line's rules
-- include shared/line.lua

if not state then
  return 'unknown'
end
go_on()
save()
for _, known in ipairs(redis.call('LRANGE', requests, 0, -1)) do
  if string.sub(known, 1, #request) == request then
    return 'again ' .. string.sub(known, #request + 2)
  end
end
local how = how_it_is()
if how ~= 'running' and how ~= 'paused' then
  return 'not-open ' .. how
end
local noted = math.min(count, math.max(waiting() - extra, 0))
extra, extra_to = extra + noted, tail
save()
redis.call('LPUSH', requests, request .. ' ' .. text(count))
redis.call('LTRIM', requests, 0, admits_kept - 1)
return 'noted ' .. text(noted)
