-- +goose Up

-- Agents read their events in the order of commits. Numbers of a sequence are not committed in their order, so an event
-- has a place like that of a change: its transaction (the upper 43 bits), which a snapshot knows to be over or not, and
-- the sequence within it. Events from before are older than every transaction.
ALTER TABLE outbox ADD COLUMN place BIGINT NOT NULL DEFAULT 0, ADD COLUMN session_id TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE outbox SET place = seq;
ALTER TABLE outbox ALTER COLUMN place
    SET DEFAULT (pg_current_xact_id()::text::bigint << 20) | (nextval('changes_no') & 1048575);
UPDATE outbox SET session_id = data::jsonb ->> 'session_id' WHERE data::jsonb ? 'session_id';
CREATE INDEX outbox_feed ON outbox (agent_id, place);
DROP INDEX outbox_agent;

-- +goose Down
CREATE INDEX outbox_agent ON outbox (agent_id, seq);
DROP INDEX outbox_feed;
ALTER TABLE outbox DROP COLUMN place, DROP COLUMN session_id;
