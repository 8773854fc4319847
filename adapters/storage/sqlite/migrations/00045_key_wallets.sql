-- +goose Up

-- The key that bought a session, and its name then; empty: not known.
ALTER TABLE sessions ADD COLUMN bought_by TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN buyer TEXT NOT NULL DEFAULT '';

-- How many keys of the agent have a row of key_wallets.
ALTER TABLE wallets ADD COLUMN restricted_keys INTEGER NOT NULL DEFAULT 0;

-- The keys that are restricted, by what, and what the sessions that they bought hold and have cost.
CREATE TABLE key_wallets (
    agent_id      TEXT    NOT NULL REFERENCES agents (id),
    key_id        TEXT    NOT NULL,
    budget_total  INTEGER, -- NULL: no limit
    budget_daily  INTEGER,
    per_purchase  INTEGER,
    products      TEXT    NOT NULL, -- with spaces; empty: all
    max_sessions  INTEGER NOT NULL, -- 0: no limit
    own           INTEGER NOT NULL CHECK (own IN (0, 1)),
    held          INTEGER NOT NULL CHECK (held >= 0),
    spent         INTEGER NOT NULL,
    live_sessions INTEGER NOT NULL,
    spent_day     INTEGER NOT NULL,
    spent_today   INTEGER NOT NULL CHECK (spent_today >= 0),
    PRIMARY KEY (agent_id, key_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE key_wallets;
ALTER TABLE wallets DROP COLUMN restricted_keys;
ALTER TABLE sessions DROP COLUMN buyer;
ALTER TABLE sessions DROP COLUMN bought_by;
