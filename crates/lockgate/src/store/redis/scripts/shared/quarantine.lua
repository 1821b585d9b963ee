-- For how long nobody may be given a lock of this partition, in microseconds, because the server is another one than before.
-- Only where there is a quarantine (otherwise the house says that 0 are left); needs the run, and the key of the stamp:
--   the run under which locks were given away last, and from when on they may be, in microseconds
-- No stamp is a server that was emptied, or is new: nobody can tell. Whoever comes first writes the stamp, so that all
-- others go by it, also those that start later.
--
-- What a server that takes over knows is what the old one knew a moment ago; what came after that is lost. Among it may be
-- a release and the grant to somebody else, who believes in it until its lease ends. So until the longest lease is over
--   - nobody is given a lock, whether it is free here, was never seen, or its lease has run out;
--   - whoever holds it here may renew it. It only does while it believes to hold it, and then nobody else was given it;
--   - whoever holds it here may give it back, and it is nobody's then. It does not go to the next waiter: the call may be
--     a copy, sent again because its answer was lost with the old server, who had given the lock to somebody else since.
-- Those who ask are let into the queue, also that of a lock which is nobody's. Afterwards it goes on in the old order.
-- include shared/run.lua

local function quarantine_left(key)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local its_stamp, ends = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
  if tonumber(its_stamp) ~= stamp then
    ends = now + quarantine_us
    redis.call('SET', key, string.format('%.0f %.0f', stamp, ends))
  end
  return math.max(ends - now, 0)
end

local quarantined_us = quarantine_left(quarantine)
