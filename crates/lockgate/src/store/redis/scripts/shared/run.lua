-- Which run of the server this is, by the connection over which the call came; on a cluster only the server itself knows.
local stamp = tonumber(run)
if not stamp then
  stamp = tonumber(string.sub(string.match(redis.call('INFO', 'server'), 'run_id:(%x+)'), 1, 12), 16)
end
