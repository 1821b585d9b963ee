-- What was done by hand: one row per admin call, of all servers, however it ended.
CREATE TABLE IF NOT EXISTS lockgate_actions (
    id      TEXT NOT NULL PRIMARY KEY,          -- 32 hexadecimal digits, by whoever wrote it down
    at_us   INTEGER NOT NULL,                   -- when, in microseconds since 1970
    action  TEXT NOT NULL,                      -- what the contract calls it, such as pause-coupon
    target  TEXT NOT NULL,                      -- the path that was asked for
    outcome TEXT NOT NULL,                      -- done, or the code of the problem
    address TEXT                                -- from where, as far as that is known
) STRICT;

CREATE INDEX IF NOT EXISTS lockgate_actions_at ON lockgate_actions (at_us);
