-- How a pool of permits is kept. Shared by the permit scripts.
--
-- A pool is three keys that end together: kept_ms to twice that after the last lease, or a day after the last change if
-- somebody waits. A fourth is there when the number of a semaphore's permits is set, and does not end.
--   pool     hash    s       -> packed: total, is_set (whether that is set, 1 or 0), taken, fence (the highest given out),
--                               due_us (when the first lease ends, or earlier), latest_us (when the last does; both 0:
--                               nobody holds any), until_ms (how long the keys are kept), waiting (how many), place (the
--                               highest in the queue, or above)
--                    r       -> the tokens that gave permits back in good order last, the latest first, each after a blank
--                    <token> -> of a holder h and, packed: permits, the last fence, when its lease ends (in microseconds);
--                               of a waiter w<permits>
--                    e<ear>  -> how many waiters hear by it
--   holders  zset    tokens, by the time when their leases end, in microseconds
--   queue    zset    <token> <permits>, by the numbers of their places
--   size     string  how many permits there are, if that is set
-- One hash, so that a call reads how the pool stands and what the token has in it in one go, and writes both in one go. Places
-- have numbers, because the place of one in the middle of a list takes a walk.
local PACKING, HOLDER, HELD = '>dBddddddd', '>Bddd', 104
local RELEASES_KEPT = 8

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
