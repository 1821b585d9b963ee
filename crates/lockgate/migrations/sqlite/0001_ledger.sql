-- What was decided: one row per change of a campaign, under its number.
--
-- Text may hold anything that a name may hold, except that a backslash is written as two, and a NUL as \0.
CREATE TABLE IF NOT EXISTS lockgate_campaigns (
    id             INTEGER PRIMARY KEY,
    kind           TEXT NOT NULL,               -- coupon, deal, sku
    grouped        TEXT,                        -- the group, if it has one
    name           TEXT NOT NULL,
    called         TEXT NOT NULL UNIQUE,        -- kind, group and name in one
    purged_rev     INTEGER NOT NULL DEFAULT 0,  -- the rows up to this one were removed by retention
    purged_granted INTEGER NOT NULL DEFAULT 0   -- and were, on balance, so many grants
) STRICT;

CREATE TABLE IF NOT EXISTS lockgate_ledger (
    campaign INTEGER NOT NULL,                  -- lockgate_campaigns.id
    rev      INTEGER NOT NULL,                  -- the number of the change: 1, 2, 3 ... without a gap
    at_us    INTEGER NOT NULL,                  -- when, in microseconds since 1970
    what     TEXT NOT NULL,                     -- opened, changed, issued, bought, held, confirmed, cancelled, expired, revoked, lost
    seq      INTEGER,                           -- the number of the grant
    user_id  TEXT,                              -- whose; empty when the user was erased
    quantity INTEGER,                           -- how many
    detail   TEXT,                              -- the hold, the request, the terms
    PRIMARY KEY (campaign, rev)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS lockgate_dead_letters (
    part     INTEGER NOT NULL,                  -- the partition of the journal
    place    TEXT NOT NULL,                     -- the position in it
    rev      INTEGER NOT NULL,                  -- 0 when the entry could not be read
    called   TEXT,                              -- the campaign, as in lockgate_campaigns
    granted  INTEGER NOT NULL,                  -- what it is in grants
    conflict INTEGER NOT NULL,                  -- 1 when the ledger has the same rev with other content
    reason   TEXT NOT NULL,
    content  TEXT NOT NULL,
    at_us    INTEGER NOT NULL,                  -- when it was put here
    PRIMARY KEY (part, place, rev)
) STRICT;

-- Who has what, for people who ask in SQL.
CREATE VIEW IF NOT EXISTS lockgate_grants AS
SELECT c.kind, c.grouped, c.name, l.seq, l.user_id, l.quantity,
       strftime('%Y-%m-%d %H:%M:%f', l.at_us / 1000000.0, 'unixepoch') AS granted_at
FROM lockgate_ledger l JOIN lockgate_campaigns c ON c.id = l.campaign
WHERE l.what IN ('issued', 'bought', 'confirmed')
  AND NOT EXISTS (SELECT 1 FROM lockgate_ledger r WHERE r.campaign = l.campaign AND r.what = 'revoked' AND r.seq = l.seq);
