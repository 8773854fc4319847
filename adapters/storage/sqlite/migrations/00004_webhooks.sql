-- +goose Up

-- What came of sending to an agent. Its URL and the version of its secret are
-- the account's, in agents; there is a row once something was sent or rotated.
CREATE TABLE webhook_states (
    agent_id         TEXT    NOT NULL PRIMARY KEY REFERENCES agents (id),
    rotated_at       INTEGER NOT NULL,
    disabled_at      INTEGER NOT NULL,
    failing_since    INTEGER NOT NULL,
    last_delivery_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One for each event in the outbox, removed with it.
CREATE TABLE webhook_deliveries (
    seq              INTEGER NOT NULL PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    agent_id         TEXT    NOT NULL,
    event_id         TEXT    NOT NULL UNIQUE,
    type             TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    attempts         INTEGER NOT NULL,
    tries            INTEGER NOT NULL,
    last_status_code INTEGER NOT NULL,
    last_error       TEXT    NOT NULL,
    next_attempt_at  INTEGER NOT NULL,
    created_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_deliveries_agent ON webhook_deliveries (agent_id, seq);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (agent_id, status, seq);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE status = 'pending';

-- What was told once, and how far. agent_id is empty for the service's own.
CREATE TABLE webhook_marks (
    agent_id TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    mark     INTEGER NOT NULL,
    PRIMARY KEY (agent_id, what)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE webhook_marks;
DROP TABLE webhook_deliveries;
DROP TABLE webhook_states;
