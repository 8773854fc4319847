-- +goose Up

-- Times are microseconds since 1970 UTC, 0 is no time. Money is millionths of a
-- dollar. Flags are 0 and 1. Nothing is a float.

CREATE TABLE referrers (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    code       TEXT    NOT NULL UNIQUE,
    is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    disabled   INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX referrers_default ON referrers (is_default) WHERE is_default = 1;

INSERT INTO referrers (id, name, code, is_default, disabled, created_at, updated_at)
VALUES ('ref_openagent', 'openAgent', 'openAgent', 1, 0, 0, 0);

CREATE TABLE agents (
    seq             INTEGER NOT NULL PRIMARY KEY, -- the order of arrival
    id              TEXT    NOT NULL UNIQUE,
    billing_user_id TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    contact_email   TEXT    NOT NULL,
    webhook_url     TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    disabled_for    TEXT    NOT NULL,
    key_hash        BLOB    NOT NULL UNIQUE,
    secret_hash     BLOB    NOT NULL,
    token_version   INTEGER NOT NULL,
    webhook_version INTEGER NOT NULL,
    per_minute      INTEGER,                      -- NULL: the service's default
    referrer_id     TEXT    NOT NULL REFERENCES referrers (id),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE wallets (
    agent_id          TEXT    NOT NULL PRIMARY KEY REFERENCES agents (id),
    trial             INTEGER NOT NULL CHECK (trial >= 0),
    own               INTEGER NOT NULL CHECK (own >= 0),
    held_trial        INTEGER NOT NULL CHECK (held_trial >= 0),
    held_own          INTEGER NOT NULL CHECK (held_own >= 0),
    trial_expires_at  INTEGER NOT NULL,
    trial_expired     INTEGER NOT NULL CHECK (trial_expired IN (0, 1)),
    funded            INTEGER NOT NULL CHECK (funded IN (0, 1)),
    charged           INTEGER NOT NULL,
    refunded          INTEGER NOT NULL,
    recharged         INTEGER NOT NULL,
    live_sessions     INTEGER NOT NULL,
    budget_daily      INTEGER,                    -- NULL: no limit
    budget_total      INTEGER,
    budget_thresholds TEXT    NOT NULL,           -- percents with commas
    budget_paused     INTEGER NOT NULL CHECK (budget_paused IN (0, 1)),
    spent_day         INTEGER NOT NULL,
    spent_today       INTEGER NOT NULL CHECK (spent_today >= 0),
    entries           INTEGER NOT NULL DEFAULT 0  -- how many moved it
) STRICT, WITHOUT ROWID;

CREATE INDEX wallets_trial_due ON wallets (trial_expires_at)
    WHERE trial_expired = 0 AND trial_expires_at > 0;

-- The ledger. ord counts 1, 2, 3 within an agent, so that a page is found and a
-- list is counted without walking it.
CREATE TABLE ledger_entries (
    seq           INTEGER NOT NULL PRIMARY KEY,
    id            TEXT    NOT NULL,
    agent_id      TEXT    NOT NULL,
    ord           INTEGER NOT NULL,
    type          TEXT    NOT NULL,
    trial         INTEGER NOT NULL,
    own           INTEGER NOT NULL,
    held_trial    INTEGER NOT NULL,
    held_own      INTEGER NOT NULL,
    account       TEXT    NOT NULL,
    counter       INTEGER NOT NULL,
    ref           TEXT    NOT NULL UNIQUE,
    session_id    TEXT    NOT NULL,
    order_id      TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    balance_after INTEGER NOT NULL CHECK (balance_after >= 0),
    CHECK (trial + own + held_trial + held_own + counter = 0),
    CHECK (account <> '' OR counter = 0)
) STRICT;

CREATE UNIQUE INDEX ledger_entries_agent ON ledger_entries (agent_id, ord, type);

-- +goose StatementBegin
CREATE TRIGGER ledger_entries_keep BEFORE UPDATE ON ledger_entries
BEGIN
    SELECT RAISE(ABORT, 'a ledger entry is never changed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER ledger_entries_stay BEFORE DELETE ON ledger_entries
BEGIN
    SELECT RAISE(ABORT, 'a ledger entry is never removed');
END;
-- +goose StatementEnd

-- Money and traffic of each hour. session_id is empty for what belongs to none.
CREATE TABLE usage_hours (
    agent_id    TEXT    NOT NULL,
    hour        INTEGER NOT NULL,
    session_id  TEXT    NOT NULL,
    up          INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    charged     INTEGER NOT NULL,
    refunded    INTEGER NOT NULL,
    recharged   INTEGER NOT NULL,
    PRIMARY KEY (agent_id, hour, session_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE usage_hours;
DROP TABLE ledger_entries;
DROP TABLE wallets;
DROP TABLE agents;
DROP TABLE referrers;
