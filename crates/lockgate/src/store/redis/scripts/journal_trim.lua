-- Forgets the journal up to and with a position.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  first_kept     the smallest position after it
--
-- Returns  how many entries that were, as a number
local journal = KEYS[1]
local first_kept = ARGV[1]

return redis.call('XTRIM', journal, 'MINID', first_kept)
