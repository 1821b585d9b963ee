-- Something is to be done at that time.
local function do_at(shelf, at_us, what)
  redis.call('ZADD', shelf.due, text(at_us), what)
  if shelf.due_at_us == 0 or at_us < shelf.due_at_us then
    shelf.due_at_us = at_us
  end
  shelf.is_changed = true
end

-- The pass of that admission was used. A renewed one ends later, but nobody has one for longer than that.
local function remember_pass(shelf, jti, expires_at_us)
  redis.call('HSET', shelf.members, 'p' .. jti, expires_at_us)
  do_at(shelf, tonumber(expires_at_us) + max_stay_us, 'fp' .. jti)
end

-- What a user has and what is held for the user: not of a coupon.
local function share_of(shelf, user)
  local share = redis.call('HGET', shelf.members, 'u' .. user)
  if not share then
    return 0, 0
  end
  local granted, held = string.match(share, '^(%d+):(%d+)$')
  return tonumber(granted), tonumber(held)
end

local function set_share(shelf, user, granted, held)
  if granted + held == 0 then
    redis.call('HDEL', shelf.members, 'u' .. user)
  else
    redis.call('HSET', shelf.members, 'u' .. user, text(granted) .. ':' .. text(held))
  end
end

-- Gives the user the next number.
local function grant(shelf, user, quantity)
  shelf.seq = shelf.seq + 1
  shelf.granted = shelf.granted + quantity
  local seq = text(shelf.seq)
  if shelf.is_coupon then
    redis.call('HSET', shelf.members, 'u' .. user, seq)
  else
    local granted, held = share_of(shelf, user)
    set_share(shelf, user, granted + quantity, held)
    redis.call('HSET', shelf.members, 's' .. seq, text(quantity) .. ':' .. user)
  end
  return seq
end

-- What was held is not any more.
local function release(shelf, id, user, quantity)
  shelf.held = shelf.held - quantity
  if not shelf.is_coupon then
    local granted, held = share_of(shelf, user)
    set_share(shelf, user, granted, held - quantity)
  elseif redis.call('HGET', shelf.members, 'u' .. user) == 'h' .. id then
    redis.call('HDEL', shelf.members, 'u' .. user)
  end
end

-- A hold, or nil.
local function hold_of(shelf, id)
  local hold = redis.call('HGET', shelf.members, 'h' .. id)
  if not hold then
    return nil
  end
  local state, quantity, expires_at_us, seq, left, user = string.match(hold, '^(%a+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return {state = state, quantity = tonumber(quantity), expires_at_us = expires_at_us, seq = seq, left = left, user = user}
end

-- What became of a hold; it is remembered for a while.
local function settle(shelf, id, hold, state, seq)
  redis.call('HSET', shelf.members, 'h' .. id, table.concat(
    {state, text(hold.quantity), hold.expires_at_us, seq, hold.left, hold.user}, ' '))
  redis.call('ZREM', shelf.due, 'g' .. id)
  do_at(shelf, now_us() + request_kept_us, 'fh' .. id)
  release(shelf, id, hold.user, hold.quantity)
end

-- Gives a hold back whose time is over, also when so many others are due that its turn has not come. What became of it.
local function give_back(shelf, id)
  local hold = hold_of(shelf, id)
  if hold and hold.state == 'held' and tonumber(hold.expires_at_us) <= now_us() then
    settle(shelf, id, hold, 'expired', '0')
    record(shelf, 'expired', 'hold', id, 'user', hold.user, 'quantity', text(hold.quantity))
    hold.state = 'expired'
  end
  return hold
end

-- Does what is due: gives back the holds whose time is over, forgets what was kept long enough.
local function sweep(shelf)
  local swept = 0
  while is_due(shelf) and swept < max_sweep do
    local due = redis.call('ZRANGEBYSCORE', shelf.due, '-inf', text(now_us()), 'LIMIT', 0, 100)
    for _, what in ipairs(due) do
      local rest = string.sub(what, 2)
      redis.call('ZREM', shelf.due, what)
      if string.sub(what, 1, 1) == 'f' then
        redis.call('HDEL', shelf.members, rest)
      else
        give_back(shelf, rest)
      end
    end
    swept = swept + #due
    local first = redis.call('ZRANGE', shelf.due, 0, 0, 'WITHSCORES')
    shelf.due_at_us = tonumber(first[2] or 0)
    shelf.is_changed = true
  end
  if shelf.is_changed then
    save(shelf)
  end
end
