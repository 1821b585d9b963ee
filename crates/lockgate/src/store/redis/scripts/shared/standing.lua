-- How the campaign stands, as a line: quantity granted held seq rev opens_at_us closes_at_us per_user switch now_us, and
-- the line whose pass it demands, if it does.
local function standing(shelf)
  local numbers = table.concat({
    text(shelf.quantity), text(shelf.granted), text(shelf.held), text(shelf.seq), text(shelf.rev),
    text(shelf.opens_at_us), text(shelf.closes_at_us), text(shelf.per_user), text(shelf.switch), text(now_us()),
  }, ' ')
  return shelf.line == '' and numbers or numbers .. ' ' .. shelf.line
end
