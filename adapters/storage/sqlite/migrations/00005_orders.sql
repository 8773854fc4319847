-- +goose Up

-- What was bought of providers, or may have been. Rows are kept for the books.
CREATE TABLE upstream_orders (
    seq           INTEGER NOT NULL PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    kind          TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    provider      TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    sku           TEXT    NOT NULL,
    country       TEXT    NOT NULL,
    city          TEXT    NOT NULL,
    quantity      INTEGER NOT NULL,
    days          INTEGER NOT NULL,
    bytes         INTEGER NOT NULL,
    max_cost      INTEGER NOT NULL,
    planned_at    INTEGER NOT NULL,

    status        TEXT    NOT NULL,
    ref           TEXT    NOT NULL, -- empty: not known
    state         TEXT    NOT NULL,
    before_refs   TEXT    NOT NULL, -- JSON
    before_amount INTEGER NOT NULL,
    before_known  INTEGER NOT NULL,
    before_at     INTEGER NOT NULL,
    goods         BLOB    NOT NULL,
    cost          INTEGER NOT NULL,
    class         TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    sent_at       INTEGER NOT NULL,
    decided_at    INTEGER NOT NULL,
    next_at       INTEGER NOT NULL, -- 0: never
    frozen_at     INTEGER NOT NULL,
    lost_at       INTEGER NOT NULL,
    closed_at     INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX upstream_orders_session ON upstream_orders (session_id, kind, seq);
CREATE INDEX upstream_orders_status ON upstream_orders (status, seq);
CREATE INDEX upstream_orders_provider ON upstream_orders (provider, seq, status);
CREATE INDEX upstream_orders_ref ON upstream_orders (provider, ref, kind) WHERE ref <> '';
-- A renewal may have the ref of what it extends.
CREATE UNIQUE INDEX upstream_orders_bought ON upstream_orders (provider, ref)
    WHERE kind = 'purchase' AND status = 'confirmed' AND ref <> '';
CREATE INDEX upstream_orders_due ON upstream_orders (next_at) WHERE next_at > 0;
CREATE INDEX upstream_orders_open ON upstream_orders (status, provider, sku, country, frozen_at)
    WHERE status IN ('planned', 'sent', 'unknown');
CREATE INDEX upstream_orders_spent ON upstream_orders (provider, sent_at, cost) WHERE status = 'confirmed';

-- +goose Down
DROP TABLE upstream_orders;
