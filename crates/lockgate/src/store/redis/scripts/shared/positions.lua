-- What XINFO says, by name.
local function facts_of(list)
  local facts = {}
  for place = 1, #list, 2 do
    facts[list[place]] = list[place + 1]
  end
  return facts
end

-- Whether one position in the journal stands before another.
local function is_before(one, other)
  local time, count = string.match(one, '^(%d+)-(%d+)$')
  local other_time, other_count = string.match(other, '^(%d+)-(%d+)$')
  time, other_time = tonumber(time), tonumber(other_time)
  return time < other_time or time == other_time and tonumber(count) < tonumber(other_count)
end

-- The smallest position after one.
local function after(position)
  local time, count = string.match(position, '^(%d+)-(%d+)$')
  return time .. '-' .. string.format('%.0f', count + 1)
end
