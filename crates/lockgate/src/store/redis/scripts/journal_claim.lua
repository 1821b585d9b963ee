-- Hands over to a reader what others of its group have left lying.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  group          of readers
-- ARGV[2]  reader         who asks
-- ARGV[3]  idle_ms        for how long it has lain
-- ARGV[4]  limit          how many entries at the most
-- ARGV[5]  forgotten_ms   after how long a reader that was never seen again, and has nothing, is forgotten
--
-- Returns  how many entries that were, as a number
local journal = KEYS[1]
local group = ARGV[1]
local reader = ARGV[2]
local idle_ms = ARGV[3]
local limit = ARGV[4]
local forgotten_ms = tonumber(ARGV[5])
-- include shared/positions.lua

local readers = redis.pcall('XINFO', 'CONSUMERS', journal, group)
if readers.err then
  -- Nothing was ever given to this group.
  return 0
end
local claimed, from = 0, '0-0'
repeat
  local answer = redis.call('XAUTOCLAIM', journal, group, reader, idle_ms, from, 'COUNT', limit, 'JUSTID')
  claimed, from = claimed + #answer[2], answer[1]
until from == '0-0' or claimed > 0

for _, known in ipairs(readers) do
  local facts = facts_of(known)
  if facts.pending == 0 and facts.idle > forgotten_ms and facts.name ~= reader then
    redis.call('XGROUP', 'DELCONSUMER', journal, group, facts.name)
  end
end
return claimed
