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

-- The key begins with the session, and a column says what is counted: each row is in one index beside the
-- table. Older programs find all of theirs, so min_compatible stays.
CREATE TABLE usage_hours_new (
    agent_id    TEXT    NOT NULL,
    hour        INTEGER NOT NULL,
    session_id  TEXT    NOT NULL,
    up          INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    charged     INTEGER NOT NULL,
    refunded    INTEGER NOT NULL,
    recharged   INTEGER NOT NULL,
    counted     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, session_id, hour)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_hours_new (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
    SELECT agent_id, hour, session_id, up, down, connections, charged, refunded, recharged
    FROM usage_hours ORDER BY agent_id, session_id, hour;
DROP TABLE usage_hours;
ALTER TABLE usage_hours_new RENAME TO usage_hours;
CREATE INDEX usage_hours_hour ON usage_hours (counted, agent_id, hour);

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

-- Sessions that live, and those that ended and are not counted yet. What a session holds is in the condition of
-- no index, so that settlements change none.
DROP INDEX sessions_open;
CREATE INDEX sessions_open ON sessions (status, agent_id, ord) WHERE counted = 0;
DROP INDEX sessions_creating;

-- A list of a product and a status reads what both leave. What else lists filter by never changes.
DROP INDEX sessions_product;
CREATE INDEX sessions_product ON sessions (agent_id, product_no, status, ord);
DROP INDEX sessions_agent;
CREATE UNIQUE INDEX sessions_agent ON sessions (agent_id, ord, type);

-- +goose Down
DROP INDEX sessions_agent;
CREATE UNIQUE INDEX sessions_agent ON sessions (agent_id, ord, status, type, product_no);
DROP INDEX sessions_product;
CREATE INDEX sessions_product ON sessions (agent_id, product_no, ord);
CREATE INDEX sessions_creating ON sessions (created_at) WHERE status = 'creating';
DROP INDEX sessions_open;
CREATE INDEX sessions_open ON sessions (agent_id, ord)
    WHERE status IN ('creating', 'active') OR held_trial + held_own > 0;
DROP TRIGGER usage_hours_late;
ALTER TABLE sessions DROP COLUMN counted;
DROP TABLE session_counts;
CREATE TABLE usage_hours_old (
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
INSERT INTO usage_hours_old SELECT agent_id, hour, session_id, up, down, connections, charged, refunded, recharged
    FROM usage_hours;
DROP TABLE usage_hours;
ALTER TABLE usage_hours_old RENAME TO usage_hours;
CREATE INDEX usage_hours_session ON usage_hours (session_id, hour);
DROP TABLE agent_hours;
DROP TABLE ledger_proofs;
