-- +goose Up

-- How many exits of the seller a session passed over because they did not meet its rule.
ALTER TABLE sessions ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sessions DROP COLUMN skipped;
