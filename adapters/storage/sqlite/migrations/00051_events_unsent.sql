-- +goose Up

-- Each event was written into four trees, which took a fifth of a purchase. Events are purged in the order of their
-- numbers, not by an index of their time, and found by their id only where a webhook is sent them. SQLite drops no
-- constraint, so the table is rebuilt under its name. Older programs use it as before, and have all events found.
CREATE TABLE outbox_rebuilt (
    seq        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    data       TEXT    NOT NULL, -- JSON
    session_id TEXT    NOT NULL DEFAULT '',
    sent       INTEGER NOT NULL DEFAULT 1 -- 0: to no webhook
) STRICT;
INSERT INTO outbox_rebuilt (seq, id, agent_id, type, at, data, session_id)
    SELECT seq, id, agent_id, type, at, data, session_id FROM outbox ORDER BY seq;
DELETE FROM sqlite_sequence WHERE name = 'outbox_rebuilt';
INSERT INTO sqlite_sequence (name, seq) SELECT 'outbox_rebuilt', seq FROM sqlite_sequence WHERE name = 'outbox';
DROP TABLE outbox;
ALTER TABLE outbox_rebuilt RENAME TO outbox;
CREATE UNIQUE INDEX outbox_id ON outbox (id) WHERE sent = 1;
CREATE INDEX outbox_agent ON outbox (agent_id, seq);

-- +goose Down
DROP INDEX outbox_id;
CREATE UNIQUE INDEX outbox_id ON outbox (id);
CREATE INDEX outbox_age ON outbox (at);
ALTER TABLE outbox DROP COLUMN sent;
