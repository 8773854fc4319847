-- +goose Up

-- What the report of margins has of UTC days that are over for good, by what it is grouped by: a provider, a product or
-- an agent. A day is its start in microseconds since 1970. service_values has which days.
CREATE TABLE margin_days (
    day      BIGINT NOT NULL,
    by_key   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    charged  BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    trial    BIGINT NOT NULL,
    given    BIGINT NOT NULL,
    cost     BIGINT NOT NULL,
    orders   BIGINT NOT NULL,
    PRIMARY KEY (day, by_key, name)
);
CREATE TABLE delivery_days (
    day        BIGINT NOT NULL,
    by_key     TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    provider   TEXT COLLATE "C" NOT NULL,
    product_no TEXT COLLATE "C" NOT NULL,
    type       TEXT COLLATE "C" NOT NULL,
    ordered    BIGINT NOT NULL,
    ips        BIGINT NOT NULL,
    days       BIGINT NOT NULL,
    charged    BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (day, by_key, name, provider, product_no, type, ordered, ips, days, charged)
);

-- +goose Down
DROP TABLE delivery_days;
DROP TABLE margin_days;
