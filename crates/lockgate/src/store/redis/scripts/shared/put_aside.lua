-- Takes something off the shelf and keeps it for a user. What stands in the place of `left` is told when the same hold is asked
-- for again; without it, how many are left. `used` is the pass that it uses up, if it does. Needs shared/batch.lua.
local function put_aside(shelf, id, user, quantity, expires_at_us, left, used)
  shelf.held = shelf.held + quantity
  if shelf.is_coupon then
    redis.call('HSET', shelf.members, 'u' .. user, 'h' .. id)
  else
    local granted, held = share_of(shelf, user)
    set_share(shelf, user, granted, held + quantity)
  end
  left = left or text(remaining(shelf))
  redis.call('HSET', shelf.members, 'h' .. id, table.concat(
    {'held', text(quantity), expires_at_us, '0', left, user}, ' '))
  record_using(used, shelf, 'held', 'hold', id, 'user', user, 'quantity', text(quantity), 'expires_at_us', expires_at_us)
  return left
end
