-- Issues coupons, each to its users in turn, as long as there are any.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- KEYS[2]  sending        what the sender's slot was answered last: the number, packed, and the answers
-- KEYS[..] keys           of each coupon the campaign, then of each its members, then of each what is due: see
--                         shared/shelf.lua
--                         and last, in every call: epoch (see epoch_settle.lua) and marks (see campaign_reopen.lua)
-- ARGV[1]  number         of this batch in its slot
-- ARGV[2]  passes         that are shown: see shared/passes.lua; empty when none is; in the order of the users
-- ARGV[3]  campaigns      how many coupons there are
-- ARGV[..] arguments      how the journal calls each coupon; then per coupon: how many users, the users packed as
--                         length:user for the journal, and each as u<user>
--                         and last, in every call: the run, see shared/epoch.lua
--
-- Returns  lines: per coupon either one line that begins with * and holds for all its users, or one per user
--          issued seq remaining      after a *, of the first; the others follow
--          already seq
--          held hold
--          pass-required, pass-invalid, pass-expired, pass-used
--          sold-out, not-open opens_at_us, paused, closed, unknown, recovering
--          or, for a late copy: late
local keys = KEYS
local arguments = ARGV
local journal = KEYS[1]
local sending = KEYS[2]
local number = tonumber(ARGV[1])
local passes = ARGV[2]
local campaigns = tonumber(ARGV[3])
-- include the stock's rules
-- include shared/replay.lua
local run, epoch, marks = arguments[#arguments], keys[#keys - 1], keys[#keys]
-- include shared/epoch.lua

-- Not in functions and tables, unlike the other scripts: for one user alone, these would cost as much as all the rest.
local format, now_us = string.format, 0
for place = 1, campaigns do
  local state = read[place + 1] or no_state
  local opens_at_us, closes_at_us, _, due_at_us = struct.unpack('>dddd', state, 41)
  if now_us == 0 and (opens_at_us + closes_at_us + due_at_us > 0 or #state > 81) then
    local time = redis.call('TIME')
    now_us = time[1] * 1000000 + time[2]
  end
  if due_at_us > 0 and due_at_us <= now_us then
    -- include shared/shelf.lua
    -- include shared/load.lua
    -- include shared/sweep.lua
    read = redis.call('MGET', unpack(keys, 2, campaigns + 2))
    break
  end
end

local answers, revs, at, shown, refused_by = {}, {}, campaigns + 4, nil, nil
for place = 1, campaigns do
  local count, packed, first = tonumber(arguments[at]), arguments[at + 1], at + 2
  local last, members, state = first + count - 1, keys[place + campaigns + 2], read[place + 1]
  at = last + 1
  local quantity, granted, held, seq, rev, opens_at_us, closes_at_us, per_user, due_at_us, switch, its_stamp =
    struct.unpack(packing, state or no_state)
  local left, issued, denial, used = quantity - granted - held, 0, nil, nil
  local line = state and #state > 81 and string.sub(state, 82) or ''
  local why_not = not state and absence(arguments[place + 3]) or its_stamp ~= stamp and 'recovering'
  if why_not then
    denial = why_not
  elseif switch == 3 or closes_at_us > 0 and now_us >= closes_at_us then
    denial = 'closed'
  elseif switch == 2 then
    denial = 'paused'
  elseif opens_at_us > now_us then
    denial = 'not-open ' .. format('%.0f', opens_at_us)
  elseif left <= 0 and line == '' then
    denial = 'sold-out'
  end

  -- One user who is new: found out and inserted in one look-up.
  if count == 1 and not denial and line == '' and redis.call('HSETNX', members, arguments[first], format('%d', seq + 1)) == 1 then
    issued = 1
    answers[#answers + 1] = '* issued ' .. format('%d %.0f', seq + 1, left - 1)
  elseif why_not then
    answers[#answers + 1] = '* ' .. why_not
  else
    local known, nobody_has_one = redis.call('HMGET', members, unpack(arguments, first, last)), true
    for user = 1, count do
      if known[user] then
        nobody_has_one = false
        break
      end
    end
    if nobody_has_one and denial then
      answers[#answers + 1] = '* ' .. denial
    else
      -- All users are new, and there is enough for them: one look-up each to insert them.
      if nobody_has_one and left >= count and line == '' then
        local new, length = {}, 0
        for user = first, last do
          new[length + 1] = arguments[user]
          length = length + 2
          new[length] = seq + length / 2
        end
        if redis.call('HSET', members, unpack(new)) == count then
          issued = count
          answers[#answers + 1] = '* issued ' .. format('%d %.0f', seq + 1, left - 1)
        else
          -- A user comes twice.
          redis.call('HDEL', members, unpack(arguments, first, last))
        end
      end
      -- Somebody has one already, or comes twice, or shows a pass, or there is not enough for all.
      if issued == 0 then
        local new, granted_now, seq_in_this_call = {}, {}, {}
        if line ~= '' then
          -- include shared/passes.lua
          used, shown, refused_by = {}, shown or passes_shown(), refused_pass
        end
        for place_of_user = first, last do
          local user = arguments[place_of_user]
          local has = known[place_of_user - first + 1] or seq_in_this_call[user]
          local answer, pass, refused
          if line ~= '' and not has and not denial then
            pass = shown[place_of_user - campaigns - 3 - 2 * place]
            -- If there is one left, a pass that does is used from this look-up on.
            refused = refused_by(pass, line, now_us, members, issued < left)
          end
          if has and string.sub(has, 1, 1) == 'h' then
            answer = 'held ' .. string.sub(has, 2)
          elseif has then
            answer = 'already ' .. has
          elseif denial or refused or issued >= left then
            answer = denial or refused or 'sold-out'
          else
            issued = issued + 1
            local seq_text = format('%d', seq + issued)
            seq_in_this_call[user] = seq_text
            new[2 * issued - 1] = user
            new[2 * issued] = seq_text
            granted_now[issued] = format('%d:', #user - 1) .. string.sub(user, 2)
            answer = 'issued ' .. seq_text .. ' ' .. format('%.0f', left - issued)
            if pass then
              used[issued] = pass.jti .. pass.expires_at_us
              local forget_at_us = pass.expires_at_us + max_stay_us
              redis.call('ZADD', keys[place + 2 * campaigns + 2], format('%.0f', forget_at_us), 'fp' .. pass.jti)
              due_at_us = due_at_us > 0 and math.min(due_at_us, forget_at_us) or forget_at_us
            end
          end
          answers[#answers + 1] = answer
        end
        packed = table.concat(granted_now)
        if issued > 0 then
          redis.call('HSET', members, unpack(new))
        end
      end
    end
  end

  if issued > 0 then
    if used then
      redis.call('XADD', journal, '*', 'campaign', arguments[place + 3], 'rev', format('%d', rev + 1), 'change', 'issued',
        'seq', format('%d', seq + 1), 'users', packed, 'passes', table.concat(used))
    else
      redis.call('XADD', journal, '*', 'campaign', arguments[place + 3], 'rev', format('%d', rev + 1), 'change', 'issued',
        'seq', format('%d', seq + 1), 'users', packed)
    end
    redis.call('SET', keys[place + 2], struct.pack(packing, quantity, granted + issued, held, seq + issued, rev + issued,
      opens_at_us, closes_at_us, per_user, due_at_us, switch, stamp) .. line)
  end
  revs[place] = why_not or format('%d', rev + issued)
end
local answer = table.concat(answers, '\n') .. '\n=' .. table.concat(revs, ' ')
redis.call('SET', sending, struct.pack('>d', number) .. answer, 'PX', sending_kept_ms)
return answer
