-- Lists the lines of a partition.
--
-- KEYS[1]  lines          zset of their names, all with the same score: so they are sorted
-- ARGV[1]  after          the last one known, or empty
-- ARGV[2]  limit          how many at the most
--
-- Returns  what ZRANGEBYLEX returns
local lines = KEYS[1]
local after = ARGV[1]
local limit = ARGV[2]

local first = after == '' and '-' or '(' .. after
return redis.call('ZRANGEBYLEX', lines, first, '+', 'LIMIT', 0, limit)
