-- Trusts campaigns again of which nothing is missing, after the server has changed.
--
-- KEYS[1]  epoch          see epoch_settle.lua
-- KEYS[2]  marks          hash of what a campaign is called -> how far it was, of those that miss something or may
-- KEYS[..] keys           of each campaign the campaign: see shared/shelf.lua
-- ARGV[1]  grace_us       how long those who know something have time to say it
-- ARGV[2]  decides        1: it may be trusted if nothing is missing; 0: it is only said how far it was
-- ARGV[..] arguments      per campaign: what it is called, how far it was; and last the run, see shared/epoch.lua
--
-- Returns  lines, one per campaign
--          open rev
--          early wait_us                       nothing is missing; but somebody may still say otherwise
--          missing rev known
--          unknown                             and nobody has said that it was ever there
local keys = KEYS
local arguments = ARGV
local epoch = KEYS[1]
local marks = KEYS[2]
local grace_us = tonumber(ARGV[1])
local decides = ARGV[2]
local run = arguments[#arguments]
-- include the stock's rules
-- include shared/epoch.lua
-- include shared/beginning.lua

-- The same state under another stamp: see shared/shelf.lua.
local function stamped(state, new_stamp)
  return string.sub(state, 1, 73) .. struct.pack('>d', new_stamp) .. string.sub(state, 82)
end

local function reopen(key, named, seen)
  local state = redis.call('GET', key)
  local rev = state and struct.unpack('>d', state, 33) or 0
  local its_stamp = state and struct.unpack('>d', state, 74) or -1
  if its_stamp == stamp and rev >= seen then
    return 'open ' .. text(rev)
  end
  -- Also what was trusted is not any more when somebody has seen more of it: it was opened anew, or rolled back, before anybody
  -- noticed. And what is not trusted under this run must not be under an earlier one: a server may come back into its office.
  if state and its_stamp ~= 0 then
    state = stamped(state, 0)
    redis.call('SET', key, state)
  end
  local marked = tonumber(redis.call('HGET', marks, named) or 0)
  local known = math.max(seen, marked)
  if known > marked then
    redis.call('HSET', marks, named, text(known))
  end
  if rev < known then
    return 'missing ' .. text(rev) .. ' ' .. text(known)
  elseif not state then
    return 'unknown'
  elseif decides == '0' or now_us - since_us < grace_us then
    return 'early ' .. text(math.max(since_us + grace_us - now_us, 0))
  end
  redis.call('SET', key, stamped(state, stamp))
  redis.call('HDEL', marks, named)
  return 'open ' .. text(rev)
end

local answers = {}
for place = 3, #keys do
  local at = 2 * place - 3
  answers[#answers + 1] = reopen(keys[place], arguments[at], tonumber(arguments[at + 1]))
end
return table.concat(answers, '\n')
