-- Says that everybody who knows something has said it: whoever is not here, and not marked, never was.
--
-- KEYS[1]  epoch          the run, 1 when it is settled (otherwise 0), since when the run is known in microseconds
-- KEYS[2]  marks          see campaign_reopen.lua
-- KEYS[3]  campaigns      the list of this partition's campaigns: see campaign_list.lua
-- ARGV[1]  grace_us       how long those who know something have time to say it
-- ARGV[2]  if_empty       1: at once where there has never been a campaign
-- ARGV[3]  run            see shared/epoch.lua
--
-- Returns  a list: settled, or early and how many microseconds are left
local epoch = KEYS[1]
local marks = KEYS[2]
local campaigns = KEYS[3]
local grace_us = tonumber(ARGV[1])
local if_empty = ARGV[2]
local run = ARGV[3]
-- include shared/epoch.lua
-- include shared/beginning.lua

local is_empty = is_new and redis.call('EXISTS', campaigns) == 0
if settled == '1' or now_us - since_us >= grace_us or is_empty and if_empty == '1' then
  redis.call('SET', epoch, table.concat({text(stamp), '1', text(since_us)}, ' '))
  return {'settled'}
end
return {'early', text(since_us + grace_us - now_us)}
