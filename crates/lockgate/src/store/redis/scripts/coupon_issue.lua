-- Issues the coupon to each user in turn, as long as there are any.
--
-- KEYS[1]  coupon         see coupon_open.lua
-- KEYS[2]  users          hash user -> seq
-- ARGV[..] user           at most 1,000, each 1 byte to 16 KiB
--
-- Returns  {'unknown'}
--          {'scheduled', opens_at_us, remaining, seq..}   too early
--          {'open', 0, remaining, seq..}
--          {'closed', 0, remaining, seq..}                too late
--          remaining is that before this call. One seq per user: above 0 issued now, below 0 issued before (negated),
--          0 denied: by the state, or, when open, because none is left.
local coupon = KEYS[1]
local users = KEYS[2]

local terms = redis.call('HMGET', coupon, 'quantity', 'issued', 'opens_at_us', 'closes_at_us')
if not terms[1] then
  return {'unknown'}
end
local issued = tonumber(terms[2])
local remaining = tonumber(terms[1]) - issued
local opens_at_us = tonumber(terms[3])
local closes_at_us = tonumber(terms[4])

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local answer = {'open', 0, remaining}
if now_us < opens_at_us then
  answer = {'scheduled', opens_at_us, remaining}
elseif closes_at_us > 0 and now_us >= closes_at_us then
  answer = {'closed', 0, remaining}
end
local can_issue = answer[1] == 'open'

local known = redis.call('HMGET', users, unpack(ARGV))
local new = {}
local seq_in_this_call = {}
for place, user in ipairs(ARGV) do
  local seq = known[place] or seq_in_this_call[user]
  if seq then
    answer[place + 3] = -tonumber(seq)
  elseif can_issue and remaining > 0 then
    issued = issued + 1
    remaining = remaining - 1
    seq_in_this_call[user] = issued
    new[#new + 1] = user
    new[#new + 1] = string.format('%.0f', issued)
    answer[place + 3] = issued
  else
    answer[place + 3] = 0
  end
end
if #new > 0 then
  redis.call('HSET', users, unpack(new))
  redis.call('HSET', coupon, 'issued', string.format('%.0f', issued))
end
return answer
