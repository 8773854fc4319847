-- +goose Up

-- What a direct session had used when the counter of its provider began anew, and since when it is below that.
ALTER TABLE upstream_orders ADD COLUMN counter_base BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upstream_orders ADD COLUMN counter_fell_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE upstream_orders DROP COLUMN counter_fell_at;
ALTER TABLE upstream_orders DROP COLUMN counter_base;
