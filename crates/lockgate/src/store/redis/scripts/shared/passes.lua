-- The passes that were shown, one per wish: false where there is none. Each comes as length:pass, and a pass is: y or n, whether
-- it is the user's own; 32 characters, the admission; 16 digits, when it ends, in microseconds; and its line.
local function passes_shown()
  local shown, from = {}, 1
  while from <= #passes do
    local colon = string.find(passes, ':', from, true)
    local ends = colon + tonumber(string.sub(passes, from, colon - 1))
    shown[#shown + 1] = ends > colon and {
      is_own = string.sub(passes, colon + 1, colon + 1) == 'y', jti = string.sub(passes, colon + 2, colon + 33),
      expires_at_us = string.sub(passes, colon + 34, colon + 49), line = string.sub(passes, colon + 50, ends),
    }
    from = ends + 1
  end
  return shown
end

-- What speaks against a pass where one of that line is demanded, or nil. With `uses`, one that does is used from then on; its
-- end is still to be written down.
local function refused_pass(pass, line, at_us, members, uses)
  if not pass then
    return 'pass-required'
  elseif not pass.is_own or pass.line ~= line then
    return 'pass-invalid'
  elseif at_us >= tonumber(pass.expires_at_us) then
    return 'pass-expired'
  end
  local is_used = uses and redis.call('HSETNX', members, 'p' .. pass.jti, pass.expires_at_us) == 0
    or not uses and redis.call('HEXISTS', members, 'p' .. pass.jti) == 1
  return is_used and 'pass-used' or nil
end
