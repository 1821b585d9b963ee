-- Lists the campaigns of a partition.
--
-- KEYS[1]  campaigns      zset of how the journal calls each campaign, all with the same score: so they are sorted
-- ARGV[1]  after          how the journal calls the last one known, or empty
-- ARGV[2]  limit          how many at the most
--
-- Returns  what ZRANGEBYLEX returns
local campaigns = KEYS[1]
local after = ARGV[1]
local limit = ARGV[2]

local first = after == '' and '-' or '(' .. after
return redis.call('ZRANGEBYLEX', campaigns, first, '+', 'LIMIT', 0, limit)
