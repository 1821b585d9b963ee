-- What was done by hand: one row per admin call, of all servers, however it ended.
CREATE TABLE IF NOT EXISTS lockgate_actions (
    id      CHAR(32) CHARACTER SET ascii NOT NULL PRIMARY KEY, -- 32 hexadecimal digits, by whoever wrote it down
    at_us   BIGINT NOT NULL,                    -- when, in microseconds since 1970
    action  TEXT NOT NULL,                      -- what the contract calls it, such as pause-coupon
    target  TEXT NOT NULL,                      -- the path that was asked for
    outcome TEXT NOT NULL,                      -- done, or the code of the problem
    address TEXT,                               -- from where, as far as that is known
    KEY lockgate_actions_at (at_us)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
