-- Tells whether the campaigns of a partition can be trusted under this run of the server, and what is missing.
--
-- KEYS[1]  epoch          see epoch_settle.lua
-- KEYS[2]  marks          see campaign_reopen.lua
-- ARGV[1]  run            see shared/epoch.lua
--
-- Returns  a list: settled or unsettled, then for each campaign that is missing something what it is called and how far it was
local epoch = KEYS[1]
local marks = KEYS[2]
local run = ARGV[1]
-- include shared/epoch.lua

local its_stamp, settled = string.match(redis.call('GET', epoch) or '', '^(%d+) (%d)')
local answer = redis.call('HGETALL', marks)
table.insert(answer, 1, tonumber(its_stamp) == stamp and settled == '1' and 'settled' or 'unsettled')
return answer
