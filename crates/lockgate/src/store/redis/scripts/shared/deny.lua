-- Why an order cannot be met, or nil. An item is `stride` arguments from `first` on: which article, quantity, and perhaps its
-- place in the order. Needs shared/batch.lua.
local function deny(first, items, stride)
  local short = {}
  for item = 0, items - 1 do
    local here = first + stride * item
    local shelf, quantity = shelves[tonumber(arguments[here])], tonumber(arguments[here + 1])
    local place = stride > 2 and arguments[here + 2] or text(item)
    if not shelf then
      return denied[tonumber(arguments[here])] .. ' ' .. place
    end
    local state = state_of(shelf)
    if state ~= 'open' then
      local word, rest = string.match(state, '^(%S+)(.*)$')
      return word .. ' ' .. place .. rest
    elseif remaining(shelf) < quantity then
      short[#short + 1] = table.concat({place, text(quantity), text(remaining(shelf))}, ' ')
    end
  end
  return #short > 0 and 'short ' .. table.concat(short, ' ') or nil
end
