-- Builds a campaign anew from what was written down of it, piece by piece. Nobody else can change it meanwhile: it is not
-- trusted before the last piece.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  campaign       see shared/shelf.lua
-- KEYS[3]  members        see shared/shelf.lua
-- KEYS[4]  due            see shared/shelf.lua
-- KEYS[5]  epoch          see epoch_settle.lua
-- KEYS[6]  marks          see campaign_reopen.lua
-- KEYS[7]  campaigns_list see campaign_list.lua
-- ARGV[1]  named          how the journal calls it
-- ARGV[2]  step           begin, apply or finish
-- ARGV[..] arguments      apply: the rev after which they come, then per change its rev and its word, then by word what follows
--                         it below; finish: how many changes are lost; and last the run, see shared/epoch.lua
--
-- Returns  one line
--          done rev
--          open rev                            it is trusted: nothing has changed
local journal = KEYS[1]
local campaign = KEYS[2]
local members = KEYS[3]
local due = KEYS[4]
local epoch = KEYS[5]
local marks = KEYS[6]
local campaigns_list = KEYS[7]
local named = ARGV[1]
local step = ARGV[2]
local arguments = ARGV
local run = arguments[#arguments]
local keys, campaigns = KEYS, 1
-- include the stock's rules
-- include shared/epoch.lua
-- include shared/shelf.lua
-- include shared/holds.lua

local shelf = shelf_of(redis.call('GET', campaign), 2, named)
if shelf and shelf.stamp == stamp then
  return 'open ' .. text(shelf.rev)
end
if step == 'begin' then
  redis.call('DEL', members, due)
  redis.call('HSET', members, '', 'u<user> s<seq> h<hold> r<request> p<pass>: who has what of this campaign of Lockgate')
end
if step == 'begin' or not shelf then
  shelf = shelf_of(string.rep('\0', 72) .. '\1' .. string.rep('\0', 8), 2, named)
end

local at = 4
local function next_argument()
  at = at + 1
  return arguments[at - 1]
end

-- Gives the number that was given then.
local function grant_again(seq, user, quantity)
  local last = shelf.seq
  shelf.seq = tonumber(seq) - 1
  grant(shelf, user, quantity)
  shelf.seq = math.max(last, shelf.seq)
end

local function settle_again(state, seq)
  local id = next_argument()
  local hold = hold_of(shelf, id)
  if hold and hold.state == 'held' then
    settle(shelf, id, hold, state, seq or '0')
  end
end

-- A pass as the journal has it: the admission and when it ends; or nothing.
local function use_again(pass)
  if pass ~= '' then
    remember_pass(shelf, string.sub(pass, 1, 32), string.sub(pass, 33))
  end
end

local apply = {
  opened = function()
    shelf.quantity, shelf.opens_at_us = tonumber(next_argument()), tonumber(next_argument())
    shelf.closes_at_us, shelf.per_user = tonumber(next_argument()), tonumber(next_argument())
    shelf.line = next_argument()
  end,
  changed = function()
    local how, by = next_argument(), tonumber(next_argument())
    shelf.switch = ({resume = 1, pause = 2, close = 3})[how] or shelf.switch
    shelf.quantity = shelf.quantity + by
  end,
  granted = function()
    local seq, user, quantity, request = next_argument(), next_argument(), tonumber(next_argument()), next_argument()
    grant_again(seq, user, quantity)
    use_again(next_argument())
    if request ~= '' then
      local granted = share_of(shelf, user)
      redis.call('HSET', members, 'r' .. request, table.concat(
        {text(quantity), seq, text(granted), text(remaining(shelf)), user}, ' '))
      do_at(shelf, now_us() + request_kept_us, 'fr' .. request)
    end
  end,
  held = function()
    local id, user, quantity, expires_at_us = next_argument(), next_argument(), tonumber(next_argument()), next_argument()
    shelf.held = shelf.held + quantity
    if shelf.is_coupon then
      redis.call('HSET', members, 'u' .. user, 'h' .. id)
    else
      local granted, held = share_of(shelf, user)
      set_share(shelf, user, granted, held + quantity)
    end
    redis.call('HSET', members, 'h' .. id, table.concat(
      {'held', text(quantity), expires_at_us, '0', text(remaining(shelf)), user}, ' '))
    do_at(shelf, tonumber(expires_at_us), 'g' .. id)
    use_again(next_argument())
  end,
  confirmed = function()
    local seq, user, quantity = next_argument(), next_argument(), tonumber(next_argument())
    settle_again('confirmed', seq)
    grant_again(seq, user, quantity)
  end,
  cancelled = function()
    settle_again('cancelled')
  end,
  expired = function()
    settle_again('expired')
  end,
  revoked = function()
    local seq, user, quantity = next_argument(), next_argument(), tonumber(next_argument())
    shelf.granted = shelf.granted - quantity
    if shelf.is_coupon then
      redis.call('HDEL', members, 'u' .. user)
    else
      local granted, held = share_of(shelf, user)
      set_share(shelf, user, granted - quantity, held)
      redis.call('HDEL', members, 's' .. seq)
    end
  end,
  lost = function()
    shelf.seq = shelf.seq + tonumber(next_argument())
  end,
}

if step == 'apply' and shelf.rev == tonumber(arguments[3]) then
  while at < #arguments do
    shelf.rev = tonumber(next_argument())
    apply[next_argument()]()
  end
elseif step == 'finish' then
  local lost = tonumber(arguments[3])
  if lost > 0 then
    -- Their numbers may have been told to somebody.
    shelf.seq = shelf.seq + lost
    record(shelf, 'lost', 'count', text(lost))
    shelf.rev = shelf.rev + lost - 1
  end
  shelf.stamp = stamp
  redis.call('ZADD', campaigns_list, 0, named)
  redis.call('HDEL', marks, named)
end
save(shelf)
return 'done ' .. text(shelf.rev)
