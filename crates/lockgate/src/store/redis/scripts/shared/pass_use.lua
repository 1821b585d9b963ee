-- include shared/passes.lua
local shown = passes_shown()

-- Why the pass of that wish does not do, if one is demanded; or nil. Needs shared/batch.lua, as the next.
local function deny_pass(shelf, wish)
  return shelf.line ~= '' and refused_pass(shown[wish], shelf.line, now_us(), shelf.members, false) or nil
end

-- A grant uses the pass up, if one is demanded. The pass as the journal has it, or nil.
local function use_pass(shelf, wish)
  if shelf.line == '' then
    return nil
  end
  local pass = shown[wish]
  remember_pass(shelf, pass.jti, pass.expires_at_us)
  return pass.jti .. pass.expires_at_us
end
