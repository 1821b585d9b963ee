-- A group of readers is done with some entries.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  group          of readers
-- ARGV[..] arguments      the group again, then the entries' positions
--
-- Returns  how many of them it had not acknowledged before, as a number
local journal = KEYS[1]
local group = ARGV[1]
local arguments = ARGV

return redis.call('XACK', journal, group, unpack(arguments, 2))
