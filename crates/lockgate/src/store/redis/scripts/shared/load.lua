-- The campaigns of this batch; false where there is none that can be trusted, and then the word for it.
local shelves, denied = {}, {}
for place = 1, campaigns do
  local shelf = shelf_of(read[place + 1], place + 2, arguments[place + 3])
  if shelf and shelf.stamp == stamp then
    shelves[place] = shelf
  else
    shelves[place], denied[place] = false, shelf and 'recovering' or absence(arguments[place + 3])
  end
end
