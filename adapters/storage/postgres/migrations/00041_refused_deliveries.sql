-- +goose NO TRANSACTION
-- +goose Up

-- Deliveries that failed without an attempt, which end sooner than others.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_refused;
CREATE INDEX CONCURRENTLY webhook_deliveries_refused ON webhook_deliveries (created_at)
    WHERE status = 'failed' AND attempts = 0;
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_refused;
