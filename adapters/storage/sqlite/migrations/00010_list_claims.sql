-- +goose Up

-- Which order has which line of an operator's list. A row is deleted when the order ends.
CREATE TABLE list_claims (
    provider   TEXT    NOT NULL,
    line       TEXT    NOT NULL,
    seat       INTEGER NOT NULL,
    order_id   TEXT    NOT NULL,
    sku        TEXT    NOT NULL,
    country    TEXT    NOT NULL,
    city       TEXT    NOT NULL,
    exit_ip    TEXT    NOT NULL, -- empty: not known
    ends_at    INTEGER NOT NULL, -- 0: with the order
    renewal    TEXT    NOT NULL,
    claimed_at INTEGER NOT NULL,
    PRIMARY KEY (provider, line, seat)
) WITHOUT ROWID;

CREATE INDEX list_claims_order ON list_claims (provider, order_id);

-- +goose Down
DROP TABLE list_claims;
