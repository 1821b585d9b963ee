-- How a mutex is given to the next waiter. Shared by the mutex scripts; needs the house's rules.
--
-- The mutex is a string that expires with its lease (a released one: after kept_ms):
--   1      state:  h held, nobody waits · q held, some may be in the queue · w held, some want to hear when it is free
--                  (and some may be in the queue) · r released; the queue is empty
--   2-33   token:  who holds it, or who released it
--   34-65  before: who released it before that, in good order; dashes: nobody
--   66-    fence:  the highest given out
-- The queue is a list of tokens. It is kept for a day after the last waiter has joined or asked.
local NOBODY = '--------------------------------'
local FENCE_BLOCK = 64
local HELD, QUEUED, WATCHED, RELEASED = 104, 113, 119, 114

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Gives the mutex to the first waiter who is there, and tells it. Returns the waiter, or nil. Nobody tells `asking`: the
-- answer to its call does. The waiter has no place in Redis but this, so one that was only away for a moment comes again.
local function give_to_next(mutex, queue, state, before, above, now, asking)
  local first = above + 1
  if first < now then
    first = now
  end
  local last = string.format('%.0f', first + FENCE_BLOCK - 1)
  while true do
    local waiter = redis.call('LPOP', queue)
    if not waiter then
      return nil
    end
    if waiter == asking or redis.call('PUBLISH', ears .. string.sub(waiter, 1, 16),
        string.format('%s %s %.0f %s %s', waiter, last, now, claim_ms, mutex)) > 0 or not skips_absent then
      redis.call('SET', mutex, state .. waiter .. before .. last, 'PX', claim_ms)
      return waiter
    end
  end
end
