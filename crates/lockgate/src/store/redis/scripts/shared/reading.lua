local campaigns = 1
-- include shared/epoch.lua
-- include shared/shelf.lua
-- include shared/holds.lua

-- The campaign as it is now: what was due is done.
local shelf = shelf_of(redis.call('GET', campaign), 2, named)
local denied = not shelf and absence(named) or shelf.stamp ~= stamp and 'recovering'
