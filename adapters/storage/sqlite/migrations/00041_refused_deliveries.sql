-- +goose Up

-- Deliveries that failed without an attempt, which end sooner than others.
CREATE INDEX webhook_deliveries_refused ON webhook_deliveries (created_at) WHERE status = 'failed' AND attempts = 0;

-- +goose Down
DROP INDEX webhook_deliveries_refused;
