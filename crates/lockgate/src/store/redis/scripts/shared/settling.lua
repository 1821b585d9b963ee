-- What is held becomes a grant; its number. Needs shared/batch.lua, as the next.
local function confirm(shelf, id, hold)
  settle(shelf, id, hold, 'confirmed', text(shelf.seq + 1))
  local seq = grant(shelf, hold.user, hold.quantity)
  record(shelf, 'confirmed', 'hold', id, 'seq', seq, 'user', hold.user, 'quantity', text(hold.quantity))
  return seq
end

-- What is held goes back on the shelf.
local function cancel(shelf, id, hold)
  settle(shelf, id, hold, 'cancelled', '0')
  record(shelf, 'cancelled', 'hold', id, 'user', hold.user, 'quantity', text(hold.quantity))
end
