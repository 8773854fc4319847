-- +goose Up

-- The closing balances of an agent: the sums and the digest of its entries before a time, the start of a month, in
-- microseconds since 1970, and what its sessions that ended before that moved.
CREATE TABLE ledger_seals (
    agent_id   TEXT NOT NULL,
    month      INTEGER NOT NULL,
    entries    INTEGER NOT NULL,
    trial      INTEGER NOT NULL,
    own        INTEGER NOT NULL,
    held_trial INTEGER NOT NULL,
    held_own   INTEGER NOT NULL,
    charged    INTEGER NOT NULL,
    refunded   INTEGER NOT NULL,
    recharged  INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    funded     INTEGER NOT NULL,
    credited   INTEGER NOT NULL,
    adjusted   INTEGER NOT NULL,
    last_hold  INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    rotations  INTEGER NOT NULL,
    PRIMARY KEY (agent_id, month)
) STRICT, WITHOUT ROWID;

-- What the entries before that time have of each session that went on.
CREATE TABLE ledger_openings (
    agent_id       TEXT NOT NULL,
    month          INTEGER NOT NULL,
    session_id     TEXT NOT NULL,
    held_trial     INTEGER NOT NULL,
    held_own       INTEGER NOT NULL,
    charged_trial  INTEGER NOT NULL,
    charged_own    INTEGER NOT NULL,
    refunded_trial INTEGER NOT NULL,
    refunded_own   INTEGER NOT NULL,
    paid           INTEGER NOT NULL,
    renewals       INTEGER NOT NULL,
    renewed        INTEGER NOT NULL,
    PRIMARY KEY (agent_id, month, session_id)
) STRICT, WITHOUT ROWID;

-- The sessions that ended since then, beside those that are not counted yet.
CREATE INDEX sessions_ended ON sessions (agent_id, ended_at) WHERE counted = 1;

-- +goose Down
DROP INDEX sessions_ended;
DROP TABLE ledger_openings;
DROP TABLE ledger_seals;
