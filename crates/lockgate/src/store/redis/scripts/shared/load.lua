-- include shared/shelf.lua
-- The campaigns of this batch; false where there is none.
local shelves = {}
for place = 1, campaigns do
  shelves[place] = shelf_of(read[place + 1], place + 2, arguments[place + 3])
end
