-- +goose Up

-- The places of addresses of a static session that ended before it, as a list of numbers, and what of its charges pays
-- for no day of an address that it has.
ALTER TABLE sessions ADD COLUMN ended_exits TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;

-- Checks of the exit that failed one after the other, and when the last did.
ALTER TABLE exit_measures ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE exit_measures ADD COLUMN failed_at INTEGER NOT NULL DEFAULT 0;

-- The addresses of static sessions that agents gave back, or asked to. idx is the number of the address in its session.
CREATE TABLE replacements (
    id         TEXT NOT NULL PRIMARY KEY,
    agent_id   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    provider   TEXT NOT NULL,
    country    TEXT NOT NULL,
    idx        INTEGER NOT NULL,
    old_ip     TEXT NOT NULL,
    new_ip     TEXT NOT NULL,
    fault      TEXT NOT NULL,
    ground     TEXT NOT NULL,
    status     TEXT NOT NULL,
    order_id   TEXT NOT NULL,
    fee        INTEGER NOT NULL,
    refund     INTEGER NOT NULL,
    kept       INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX replacements_session ON replacements (session_id, at);
CREATE INDEX replacements_agent ON replacements (agent_id, at);
CREATE INDEX replacements_order ON replacements (order_id) WHERE order_id <> '';

-- +goose Down
DROP TABLE replacements;
ALTER TABLE exit_measures DROP COLUMN failed_at;
ALTER TABLE exit_measures DROP COLUMN failures;
ALTER TABLE sessions DROP COLUMN kept;
ALTER TABLE sessions DROP COLUMN ended_exits;
