-- +goose Up
-- What a provider delivered, encrypted, has the name that the code and its documents use.
ALTER TABLE upstream_orders RENAME COLUMN goods TO sealed_delivery;

-- +goose Down
ALTER TABLE upstream_orders RENAME COLUMN sealed_delivery TO goods;
