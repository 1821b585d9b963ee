-- Sells, each wish in turn, whole or not at all.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each deal the campaign, then of each its members, then of each what is due: see
--                         shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         that are shown: see shared/passes.lua; empty when none is
-- ARGV[3]  campaigns      how many deals there are
-- ARGV[..] arguments      how the journal calls each deal; then per wish: which deal, user, quantity, request or nothing
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines, one per wish
--          bought seq purchased remaining
--          already seq purchased remaining     as this request was answered before
--          reused                              the same request with another user or quantity
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

local function replay(shelf, user, quantity, request)
  local before = request ~= '' and redis.call('HGET', shelf.members, 'r' .. request)
  if not before then
    return nil
  end
  local its_quantity, seq, purchased, left, its_user = string.match(before, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  if its_user ~= user or tonumber(its_quantity) ~= quantity then
    return 'reused'
  end
  return table.concat({'already', seq, purchased, left}, ' ')
end

local function purchase(shelf, wish, user, quantity, request)
  local state = state_of(shelf)
  local denied = state ~= 'open' and state or deny_pass(shelf, wish)
  if denied then
    return denied
  end
  local granted, held = share_of(shelf, user)
  if shelf.per_user > 0 and granted + held + quantity > shelf.per_user then
    return 'limit ' .. text(granted + held) .. ' ' .. text(shelf.per_user)
  elseif remaining(shelf) < quantity then
    return 'sold-out ' .. text(remaining(shelf))
  end
  local seq = grant(shelf, user, quantity)
  local numbers = table.concat({seq, text(granted + quantity), text(remaining(shelf))}, ' ')
  record_using(use_pass(shelf, wish), shelf, 'bought', 'seq', seq, 'user', user, 'quantity', text(quantity),
    'request', request)
  if request ~= '' then
    redis.call('HSET', shelf.members, 'r' .. request, table.concat({text(quantity), numbers, user}, ' '))
    do_at(shelf, now_us() + request_kept_us, 'fr' .. request)
  end
  return 'bought ' .. numbers
end

local answers = {}
for place = at, wishes_end, 4 do
  local shelf, user = shelves[tonumber(arguments[place])], arguments[place + 1]
  local quantity, request = tonumber(arguments[place + 2]), arguments[place + 3]
  answers[#answers + 1] = not shelf and denied[tonumber(arguments[place])]
    or replay(shelf, user, quantity, request)
    or purchase(shelf, (place - at) / 4 + 1, user, quantity, request)
end
return finish(answers)
