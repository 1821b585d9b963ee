-- include shared/replay.lua
-- include shared/load.lua
-- include shared/sweep.lua

-- Where the wishes begin.
local at = campaigns + 4

-- Writes what has changed, and remembers the answers.
local function finish(answers)
  for _, shelf in ipairs(shelves) do
    if shelf and shelf.is_changed then
      save(shelf)
    end
  end
  local answer = table.concat(answers, '\n')
  redis.call('SET', sending, struct.pack('>d', number) .. answer, 'PX', sending_kept_ms)
  return answer
end
