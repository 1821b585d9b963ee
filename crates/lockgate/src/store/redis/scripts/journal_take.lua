-- Gives a reader what it has not acknowledged yet, or else the next entries that its group has not been given.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  group          of readers; one that is new begins at the beginning
-- ARGV[2]  reader         who asks
-- ARGV[3]  after          a position
-- ARGV[4]  limit          how many entries at the most
--
-- Returns  the entries, as XRANGE returns them; one that was removed has no fields
local journal = KEYS[1]
local group = ARGV[1]
local reader = ARGV[2]
local after = ARGV[3]
local limit = ARGV[4]

local function take(from)
  local taken = redis.pcall('XREADGROUP', 'GROUP', group, reader, 'COUNT', limit, 'STREAMS', journal, from)
  if taken and taken.err and string.find(taken.err, 'NOGROUP', 1, true) then
    redis.call('XGROUP', 'CREATE', journal, group, '0', 'MKSTREAM')
    return take(from)
  elseif taken and taken.err then
    return taken
  end
  return taken and taken[1][2] or {}
end

local left_behind = take(after)
if left_behind.err or #left_behind > 0 then
  return left_behind
end
return take('>')
