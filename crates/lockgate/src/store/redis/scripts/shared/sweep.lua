-- include shared/holds.lua
-- What is due is done before anything else.
for _, shelf in ipairs(shelves) do
  if shelf then
    sweep(shelf)
  end
end
