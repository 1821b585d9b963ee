-- Puts things aside, each wish in turn, whole or not at all.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each campaign the campaign, then of each its members, then of each what is due: see
--                         shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         that are shown: see shared/passes.lua; empty when none is
-- ARGV[3]  campaigns      how many campaigns there are
-- ARGV[..] arguments      how the journal calls each campaign; then per wish: which campaign, hold, user, quantity, ttl_us
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines, one per wish
--          held expires_at_us remaining        also when this hold was placed before
--          reused                              the same hold with another user or quantity
--          already seq                         the user has the coupon
--          pass-required, pass-invalid, pass-expired, pass-used
--          limit taken per_user
--          sold-out remaining
--          not-open opens_at_us, paused, closed, unknown, recovering
--          or, for a late copy: late
local keys = KEYS
local arguments = ARGV
local journal = KEYS[1]
local sending = KEYS[2]
local number = tonumber(ARGV[1])
local passes = ARGV[2]
local campaigns = tonumber(ARGV[3])
-- include the stock's rules
-- include shared/batch.lua
-- include shared/pass_use.lua
-- include shared/put_aside.lua

local function replay(shelf, id, user, quantity)
  local before = hold_of(shelf, id)
  if not before then
    return nil
  elseif before.user ~= user or before.quantity ~= quantity then
    return 'reused'
  end
  return table.concat({'held', before.expires_at_us, before.left}, ' ')
end

-- What denies it for want of the user's share, of a pass or of stock; or nil.
local function deny_for_want(shelf, wish, user, quantity)
  local granted, held, per_user = 0, 0, shelf.per_user
  if shelf.is_coupon then
    local seat = redis.call('HGET', shelf.members, 'u' .. user)
    if seat and string.sub(seat, 1, 1) ~= 'h' then
      -- Before any pass is looked at: the one that it was had for is used.
      return 'already ' .. seat
    end
    held, per_user = seat and 1 or 0, 1
  else
    granted, held = share_of(shelf, user)
  end
  local denied = deny_pass(shelf, wish)
  if denied then
    return denied
  elseif per_user > 0 and granted + held + quantity > per_user then
    return 'limit ' .. text(granted + held) .. ' ' .. text(per_user)
  elseif remaining(shelf) < quantity then
    return 'sold-out ' .. text(remaining(shelf))
  end
  return nil
end

local function place_hold(shelf, wish, id, user, quantity, ttl_us)
  local state = state_of(shelf)
  local denied = state ~= 'open' and state or deny_for_want(shelf, wish, user, quantity)
  if denied then
    return denied
  end
  local expires_at_us = text(now_us() + ttl_us)
  local left = put_aside(shelf, id, user, quantity, expires_at_us, nil, use_pass(shelf, wish))
  do_at(shelf, now_us() + ttl_us, 'g' .. id)
  return table.concat({'held', expires_at_us, left}, ' ')
end

local answers = {}
for place = at, wishes_end, 5 do
  local shelf, id, user = shelves[tonumber(arguments[place])], arguments[place + 1], arguments[place + 2]
  local quantity, ttl_us = tonumber(arguments[place + 3]), tonumber(arguments[place + 4])
  answers[#answers + 1] = not shelf and denied[tonumber(arguments[place])]
    or replay(shelf, id, user, quantity)
    or place_hold(shelf, (place - at) / 5 + 1, id, user, quantity, ttl_us)
end
return finish(answers)
