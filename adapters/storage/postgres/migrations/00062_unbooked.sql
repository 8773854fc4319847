-- +goose NO TRANSACTION
-- +goose Up

-- Sessions whose use is not charged yet, for balances. settle_at is set with the first traffic of an hour, and has an
-- index already, so no other update writes this one. The statements may run again, should one fail.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS sessions_unbooked;
CREATE INDEX CONCURRENTLY sessions_unbooked ON sessions (agent_id) WHERE settle_at > 0;
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_unbooked;
