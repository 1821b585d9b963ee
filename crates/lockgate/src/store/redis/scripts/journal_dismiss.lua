-- Forgets a group of readers.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  group          of readers
--
-- Returns  how many groups that were, as a number
local journal = KEYS[1]
local group = ARGV[1]

if redis.call('EXISTS', journal) == 0 then
  return 0
end
return redis.call('XGROUP', 'DESTROY', journal, group)
