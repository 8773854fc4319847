-- +goose Up

-- The index of events by their agents changed a page of the file for each agent of a commit. The numbers of an agent's
-- events are listed here instead, some hundred at a time; the row of no agent has the highest that is listed. Programs
-- from before it list none, and are made up for.
CREATE TABLE outbox_feeds (
    agent_id TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (agent_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO outbox_feeds (agent_id, seq) SELECT agent_id, seq FROM outbox WHERE agent_id <> '' ORDER BY agent_id, seq;
INSERT INTO outbox_feeds (agent_id, seq) SELECT '', COALESCE(MAX(seq), 0) FROM outbox;
DROP INDEX outbox_agent;

-- +goose StatementBegin
CREATE TRIGGER outbox_feeds_follow AFTER DELETE ON outbox WHEN OLD.agent_id <> ''
BEGIN
    DELETE FROM outbox_feeds WHERE agent_id = OLD.agent_id AND seq = OLD.seq;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER outbox_feeds_follow;
CREATE INDEX outbox_agent ON outbox (agent_id, seq);
DROP TABLE outbox_feeds;
