-- +goose Up

-- What the report of margins has of UTC days that are over for good, by what it is grouped by: a provider, a product or
-- an agent. A day is its start in microseconds since 1970. service_values has which days.
CREATE TABLE margin_days (
    day      INTEGER NOT NULL,
    by_key   TEXT NOT NULL,
    name     TEXT NOT NULL,
    charged  INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    trial    INTEGER NOT NULL,
    given    INTEGER NOT NULL,
    cost     INTEGER NOT NULL,
    orders   INTEGER NOT NULL,
    PRIMARY KEY (day, by_key, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery_days (
    day        INTEGER NOT NULL,
    by_key     TEXT NOT NULL,
    name       TEXT NOT NULL,
    provider   TEXT NOT NULL,
    product_no TEXT NOT NULL,
    type       TEXT NOT NULL,
    ordered    INTEGER NOT NULL,
    ips        INTEGER NOT NULL,
    days       INTEGER NOT NULL,
    charged    INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    PRIMARY KEY (day, by_key, name, provider, product_no, type, ordered, ips, days, charged)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE delivery_days;
DROP TABLE margin_days;
