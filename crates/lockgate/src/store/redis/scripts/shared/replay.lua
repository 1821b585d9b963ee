-- The state of a campaign that is none: see shared/shelf.lua.
local no_state = string.rep('\0', 81)

-- The same batch again is answered again; a late copy of an earlier one is not done. What the slot was answered last and all
-- campaigns are read in one go.
local read = redis.call('MGET', unpack(keys, 2, campaigns + 2))
if read[1] then
  local last_number, rest = struct.unpack('>d', read[1])
  if last_number == number then
    return string.sub(read[1], rest)
  elseif last_number > number then
    return 'late'
  end
end
