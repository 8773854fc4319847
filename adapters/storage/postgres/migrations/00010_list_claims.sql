-- +goose Up

-- Which order has which line of an operator's list. A row is deleted when the order ends.
CREATE TABLE list_claims (
    provider   TEXT   COLLATE "C" NOT NULL,
    line       TEXT   COLLATE "C" NOT NULL,
    seat       BIGINT NOT NULL,
    order_id   TEXT   COLLATE "C" NOT NULL,
    sku        TEXT   COLLATE "C" NOT NULL,
    country    TEXT   NOT NULL,
    city       TEXT   NOT NULL,
    exit_ip    TEXT   COLLATE "C" NOT NULL, -- empty: not known
    ends_at    BIGINT NOT NULL, -- 0: with the order
    renewal    TEXT   COLLATE "C" NOT NULL,
    claimed_at BIGINT NOT NULL,
    PRIMARY KEY (provider, line, seat)
);

CREATE INDEX list_claims_order ON list_claims (provider, order_id);

-- +goose Down
DROP TABLE list_claims;
