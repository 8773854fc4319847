-- +goose Up

-- When the access of an ended direct session was stopped at its provider; 0: it was not.
ALTER TABLE upstream_orders ADD COLUMN cut_at INTEGER NOT NULL DEFAULT 0;

CREATE INDEX upstream_orders_owed ON upstream_orders (closed_at, provider, lost_at, frozen_at)
    WHERE kind = 'purchase' AND status = 'confirmed' AND closed_at = 0;

-- What the last complete reconciliation of a provider found.
CREATE TABLE reconciliations (
    provider TEXT    NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    listed   INTEGER NOT NULL, -- what the provider has
    orphans  INTEGER NOT NULL  -- what of it no order is known for
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE reconciliations;
DROP INDEX upstream_orders_owed;
ALTER TABLE upstream_orders DROP COLUMN cut_at;
