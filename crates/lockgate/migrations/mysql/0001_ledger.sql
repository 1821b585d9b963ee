-- What was decided: one row per change of a campaign, under its number.
--
-- Text may hold anything that a name may hold, except that a backslash is written as two, and a NUL as \0. Statements are
-- committed one by one here, so each of them may be run again.
CREATE TABLE IF NOT EXISTS lockgate_campaigns (
    id             BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind           VARCHAR(16) NOT NULL,        -- coupon, deal, sku
    grouped        MEDIUMTEXT,                  -- the group, if it has one
    name           MEDIUMTEXT NOT NULL,
    called         MEDIUMTEXT NOT NULL,         -- kind, group and name in one
    purged_rev     BIGINT NOT NULL DEFAULT 0,   -- the rows up to this one were removed by retention
    purged_granted BIGINT NOT NULL DEFAULT 0,   -- and were, on balance, so many grants
    -- A name may be longer than an index entry, its digest is not.
    digest         CHAR(32) CHARACTER SET ascii AS (MD5(called)) STORED,
    UNIQUE KEY lockgate_campaigns_called (digest)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lockgate_ledger (
    campaign BIGINT NOT NULL,                   -- lockgate_campaigns.id
    rev      BIGINT NOT NULL,                   -- the number of the change: 1, 2, 3 ... without a gap
    at_us    BIGINT NOT NULL,                   -- when, in microseconds since 1970
    what     VARCHAR(16) NOT NULL,              -- opened, changed, issued, bought, held, confirmed, cancelled, expired, revoked, lost
    seq      BIGINT,                            -- the number of the grant
    user_id  TEXT,                              -- whose; empty when the user was erased
    quantity BIGINT,                            -- how many
    detail   TEXT,                              -- the hold, the request, the terms
    PRIMARY KEY (campaign, rev)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lockgate_dead_letters (
    part     BIGINT NOT NULL,                   -- the partition of the journal
    place    VARCHAR(48) CHARACTER SET ascii NOT NULL, -- the position in it
    rev      BIGINT NOT NULL,                   -- 0 when the entry could not be read
    called   MEDIUMTEXT,                        -- the campaign, as in lockgate_campaigns
    granted  BIGINT NOT NULL,                   -- what it is in grants
    conflict BIGINT NOT NULL,                   -- 1 when the ledger has the same rev with other content
    reason   MEDIUMTEXT NOT NULL,
    content  MEDIUMTEXT NOT NULL,
    at_us    BIGINT NOT NULL,                   -- when it was put here
    PRIMARY KEY (part, place, rev)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Who has what, for people who ask in SQL.
CREATE OR REPLACE VIEW lockgate_grants AS
SELECT c.kind, c.grouped, c.name, l.seq, l.user_id, l.quantity, FROM_UNIXTIME(l.at_us / 1000000) AS granted_at
FROM lockgate_ledger l JOIN lockgate_campaigns c ON c.id = l.campaign
WHERE l.what IN ('issued', 'bought', 'confirmed')
  AND NOT EXISTS (SELECT 1 FROM lockgate_ledger r WHERE r.campaign = l.campaign AND r.what = 'revoked' AND r.seq = l.seq);
