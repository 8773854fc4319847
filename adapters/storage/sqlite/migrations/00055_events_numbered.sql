-- +goose Up

-- AUTOINCREMENT wrote a second table for each event, which took a twentieth of a purchase. Numbers go on from the
-- highest in the table, which therefore always stays: the trigger holds for older programs too. A row without an agent
-- marks a number that was given out before.
CREATE TABLE outbox_rebuilt (
    seq        INTEGER NOT NULL PRIMARY KEY,
    id         TEXT    NOT NULL,
    agent_id   TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    data       TEXT    NOT NULL, -- JSON
    session_id TEXT    NOT NULL DEFAULT '',
    sent       INTEGER NOT NULL DEFAULT 1 -- 0: to no webhook
) STRICT;
INSERT INTO outbox_rebuilt (seq, id, agent_id, type, at, data, session_id, sent)
    SELECT seq, id, agent_id, type, at, data, session_id, sent FROM outbox ORDER BY seq;
INSERT INTO outbox_rebuilt (seq, id, agent_id, type, at, data, sent)
    SELECT seq, '', '', '', 0, '{}', 0 FROM sqlite_sequence
    WHERE name = 'outbox' AND seq > (SELECT COALESCE(MAX(seq), 0) FROM outbox);
DROP TABLE outbox;
ALTER TABLE outbox_rebuilt RENAME TO outbox;
CREATE UNIQUE INDEX outbox_id ON outbox (id) WHERE sent = 1;
CREATE INDEX outbox_agent ON outbox (agent_id, seq);

-- +goose StatementBegin
CREATE TRIGGER outbox_newest_stays BEFORE DELETE ON outbox WHEN OLD.seq = (SELECT MAX(seq) FROM outbox)
BEGIN
    SELECT RAISE(IGNORE);
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER outbox_newest_stays;
