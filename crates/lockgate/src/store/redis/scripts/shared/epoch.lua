-- A campaign that was last trusted under another run of the server may have lost something.
-- include shared/run.lua

-- Why there is no campaign: there never was one, or it was lost, or nobody knows yet.
local function absence(named)
  local its_stamp, settled = string.match(redis.call('GET', epoch) or '', '^(%d+) (%d)')
  local is_known = tonumber(its_stamp) == stamp and settled == '1' and redis.call('HEXISTS', marks, named) == 0
  return is_known and 'unknown' or 'recovering'
end
