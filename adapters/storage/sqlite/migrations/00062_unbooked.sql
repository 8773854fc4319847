-- +goose Up

-- Sessions whose use is not charged yet, for balances. settle_at is set with the first traffic of an hour.
CREATE INDEX sessions_unbooked ON sessions (agent_id) WHERE settle_at > 0;

-- +goose Down
DROP INDEX sessions_unbooked;
