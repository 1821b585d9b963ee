-- Forgets the journal up to and with a position, but nothing that a group of readers has not acknowledged.
--
-- KEYS[1]  journal        stream of all changes in this partition
-- ARGV[1]  first_kept     the smallest position after it
--
-- Returns  how many entries that were, as a number
local journal = KEYS[1]
local first_kept = ARGV[1]
-- include shared/positions.lua

if redis.call('EXISTS', journal) == 0 then
  return 0
end
for _, known in ipairs(redis.call('XINFO', 'GROUPS', journal)) do
  local facts = facts_of(known)
  local first_needed = redis.call('XPENDING', journal, facts.name)[2] or after(facts['last-delivered-id'])
  if is_before(first_needed, first_kept) then
    first_kept = first_needed
  end
end
return redis.call('XTRIM', journal, 'MINID', first_kept)
