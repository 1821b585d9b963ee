-- include shared/replay.lua
local run, epoch, marks = arguments[#arguments], keys[#keys - 1], keys[#keys]
-- include shared/epoch.lua
-- include shared/shelf.lua
-- include shared/load.lua
-- include shared/sweep.lua

-- Where the wishes begin and end.
local at, wishes_end = campaigns + 4, #arguments - 1

-- Writes what has changed, and remembers the answers.
local function finish(answers)
  for _, shelf in ipairs(shelves) do
    if shelf and shelf.is_changed then
      save(shelf)
    end
  end
  -- Its last line says how far each campaign is, or why it is not there.
  local revs = {}
  for place = 1, campaigns do
    revs[place] = shelves[place] and text(shelves[place].rev) or denied[place]
  end
  local answer = table.concat(answers, '\n') .. '\n=' .. table.concat(revs, ' ')
  redis.call('SET', sending, struct.pack('>d', number) .. answer, 'PX', sending_kept_ms)
  return answer
end
