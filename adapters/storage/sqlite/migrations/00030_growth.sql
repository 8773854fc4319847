-- +goose Up

-- How far the entries of each agent are proved. The sums are those of the first entries, whose digest is a
-- chain: that of each entry covers all of its columns and the digest before it.
CREATE TABLE ledger_proofs (
    agent_id   TEXT    NOT NULL PRIMARY KEY,
    entries    INTEGER NOT NULL,
    trial      INTEGER NOT NULL,
    own        INTEGER NOT NULL,
    held_trial INTEGER NOT NULL,
    held_own   INTEGER NOT NULL,
    charged    INTEGER NOT NULL,
    refunded   INTEGER NOT NULL,
    recharged  INTEGER NOT NULL,
    digest     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The sums of usage_hours by agent and hour, apart for what is of no session. A row of usage_hours is in
-- them once counted is 1. last counts the sessions of which no later hour is in them.
CREATE TABLE agent_hours (
    agent_id    TEXT    NOT NULL,
    hour        INTEGER NOT NULL,
    of_sessions INTEGER NOT NULL CHECK (of_sessions IN (0, 1)),
    up          INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    charged     INTEGER NOT NULL,
    refunded    INTEGER NOT NULL,
    recharged   INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    PRIMARY KEY (agent_id, hour, of_sessions)
) STRICT, WITHOUT ROWID;

ALTER TABLE usage_hours ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;

-- What is added late to an hour that is counted already.
-- +goose StatementBegin
CREATE TRIGGER usage_hours_late AFTER UPDATE ON usage_hours WHEN OLD.counted = 1
BEGIN
    UPDATE agent_hours SET up = up + NEW.up - OLD.up, down = down + NEW.down - OLD.down,
        connections = connections + NEW.connections - OLD.connections, charged = charged + NEW.charged - OLD.charged,
        refunded = refunded + NEW.refunded - OLD.refunded, recharged = recharged + NEW.recharged - OLD.recharged
    WHERE agent_id = NEW.agent_id AND hour = NEW.hour
        AND of_sessions = CASE NEW.session_id WHEN '' THEN 0 ELSE 1 END;
END;
-- +goose StatementEnd

-- How many sessions ended. A session is among them once counted is 1.
CREATE TABLE session_counts (
    agent_id   TEXT    NOT NULL,
    product_no TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (agent_id, product_no, type, status)
) STRICT, WITHOUT ROWID;

ALTER TABLE sessions ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;

-- What is not counted yet.
CREATE INDEX usage_hours_uncounted ON usage_hours (agent_id, hour) WHERE counted = 0;
CREATE INDEX sessions_uncounted ON sessions (agent_id, seq)
    WHERE counted = 0 AND status IN ('terminated', 'expired', 'failed');

-- +goose Down
DROP INDEX sessions_uncounted;
DROP INDEX usage_hours_uncounted;
DROP TRIGGER usage_hours_late;
ALTER TABLE sessions DROP COLUMN counted;
DROP TABLE session_counts;
ALTER TABLE usage_hours DROP COLUMN counted;
DROP TABLE agent_hours;
DROP TABLE ledger_proofs;
