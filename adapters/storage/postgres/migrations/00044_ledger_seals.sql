-- +goose NO TRANSACTION
-- +goose Up

-- The closing balances of an agent: the sums and the digest of its entries before a time, the start of a month, in
-- microseconds since 1970, and what its sessions that ended before that moved.
CREATE TABLE IF NOT EXISTS ledger_seals (
    agent_id   TEXT COLLATE "C" NOT NULL,
    month      BIGINT NOT NULL,
    entries    BIGINT NOT NULL,
    trial      BIGINT NOT NULL,
    own        BIGINT NOT NULL,
    held_trial BIGINT NOT NULL,
    held_own   BIGINT NOT NULL,
    charged    BIGINT NOT NULL,
    refunded   BIGINT NOT NULL,
    recharged  BIGINT NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    granted_at BIGINT NOT NULL,
    funded     BIGINT NOT NULL,
    credited   BIGINT NOT NULL,
    adjusted   BIGINT NOT NULL,
    last_hold  BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    rotations  BIGINT NOT NULL,
    PRIMARY KEY (agent_id, month)
);

-- What the entries before that time have of each session that went on.
CREATE TABLE IF NOT EXISTS ledger_openings (
    agent_id       TEXT COLLATE "C" NOT NULL,
    month          BIGINT NOT NULL,
    session_id     TEXT COLLATE "C" NOT NULL,
    held_trial     BIGINT NOT NULL,
    held_own       BIGINT NOT NULL,
    charged_trial  BIGINT NOT NULL,
    charged_own    BIGINT NOT NULL,
    refunded_trial BIGINT NOT NULL,
    refunded_own   BIGINT NOT NULL,
    paid           BIGINT NOT NULL,
    renewals       BIGINT NOT NULL,
    renewed        BIGINT NOT NULL,
    PRIMARY KEY (agent_id, month, session_id)
);

-- The sessions that ended since then, beside those that are not counted yet.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS sessions_ended;
CREATE INDEX CONCURRENTLY sessions_ended ON sessions (agent_id, ended_at) WHERE counted = 1;
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_ended;
DROP TABLE IF EXISTS ledger_openings;
DROP TABLE IF EXISTS ledger_seals;
