local function text(number)
  return string.format('%.0f', number)
end

-- Since when this run is known, and whether it is settled; whoever comes first begins it.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local its_stamp, settled, since_us = string.match(redis.call('GET', epoch) or '', '^(%d+) (%d) (%d+)$')
local is_new = not its_stamp
if tonumber(its_stamp) ~= stamp then
  settled, since_us = '0', now_us
  redis.call('SET', epoch, table.concat({text(stamp), settled, text(since_us)}, ' '))
end
since_us = tonumber(since_us)
