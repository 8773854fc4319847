-- +goose Up

-- Events are purged in the order of their numbers, not by an index of their time. Those with sent = 0 are sent to no
-- webhook, and not looked for by their id.
ALTER TABLE outbox ADD COLUMN sent SMALLINT NOT NULL DEFAULT 1;
DROP INDEX outbox_age;

-- +goose Down
CREATE INDEX outbox_age ON outbox (at);
ALTER TABLE outbox DROP COLUMN sent;
