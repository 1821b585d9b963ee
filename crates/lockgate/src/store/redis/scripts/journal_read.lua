-- Reads the journal from after a position on.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  after          a position
-- ARGV[2]  limit          how many entries at the most
--
-- Returns  what XRANGE returns
local journal = KEYS[1]
local after = ARGV[1]
local limit = ARGV[2]

return redis.call('XRANGE', journal, '(' .. after, '+', 'COUNT', limit)
