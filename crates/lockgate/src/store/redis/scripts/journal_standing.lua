-- Tells how far a group of readers is.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  group          of readers
--
-- Returns  a list of two positions and a number: of the last entry ever written; of the oldest that the group has not
--          acknowledged, or empty; and the time, in milliseconds
local journal = KEYS[1]
local group = ARGV[1]
-- include shared/positions.lua

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('EXISTS', journal) == 0 then
  return {'0-0', '', now_ms}
end
local last = facts_of(redis.call('XINFO', 'STREAM', journal))['last-generated-id']
local delivered, oldest = '0-0', ''
for _, known in ipairs(redis.call('XINFO', 'GROUPS', journal)) do
  local facts = facts_of(known)
  if facts.name == group then
    delivered = facts['last-delivered-id']
    oldest = redis.call('XPENDING', journal, group)[2] or ''
  end
end
if oldest == '' then
  local next_one = redis.call('XRANGE', journal, '(' .. delivered, '+', 'COUNT', 1)[1]
  oldest = next_one and next_one[1] or ''
end
return {last, oldest, now_ms}
