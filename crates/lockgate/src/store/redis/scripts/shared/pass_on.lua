-- What happens to a mutex that is nobody's any more: the next waiter has it, or it is free. Needs shared/hand_over.lua and
-- shared/quarantine.lua.
local function pass_on(mutex, queue, state, token, before, fence)
  local letter = state == WATCHED and 'w' or 'q'
  if state ~= HELD and quarantined_us == 0 and give_to_next(mutex, queue, letter, token, fence, now_us()) then
    return
  end
  redis.call('SET', mutex, 'r' .. token .. before .. string.format('%.0f', fence), 'PX', kept_ms)
  if state == WATCHED then
    redis.call('PUBLISH', freed, mutex)
  end
end
