-- +goose Up

-- Agents read their events in the order of their numbers, which is that of commits.
ALTER TABLE outbox ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
UPDATE outbox SET session_id = data ->> '$.session_id' WHERE data ->> '$.session_id' IS NOT NULL;

-- +goose Down
ALTER TABLE outbox DROP COLUMN session_id;
