-- Which run of the server this is, by the connection over which the call came; on a cluster only the server itself knows. A
-- campaign that was last trusted under another run may have lost something.
local stamp = tonumber(run)
if not stamp then
  stamp = tonumber(string.sub(string.match(redis.call('INFO', 'server'), 'run_id:(%x+)'), 1, 12), 16)
end

-- Why there is no campaign: there never was one, or it was lost, or nobody knows yet.
local function absence(named)
  local its_stamp, settled = string.match(redis.call('GET', epoch) or '', '^(%d+) (%d)')
  local is_known = tonumber(its_stamp) == stamp and settled == '1' and redis.call('HEXISTS', marks, named) == 0
  return is_known and 'unknown' or 'recovering'
end
