-- +goose Up

-- What the report of margins has of UTC days, by what it is grouped by: a provider, a product or an agent. A day is its
-- start in microseconds since 1970. Entries are summed up to a number, and orders of the days, that service_values has.
-- Older programs go on with margin_days and delivery_days.
CREATE TABLE margin_sums (
    day      INTEGER NOT NULL,
    by_key   TEXT NOT NULL,
    name     TEXT NOT NULL,
    charged  INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    trial    INTEGER NOT NULL,
    given    INTEGER NOT NULL,
    cost     INTEGER NOT NULL,
    orders   INTEGER NOT NULL,
    PRIMARY KEY (by_key, day, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery_sums (
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
    PRIMARY KEY (by_key, day, name, provider, product_no, type, ordered, ips, days, charged)
) STRICT, WITHOUT ROWID;

-- What the report has of replacements.
CREATE INDEX replacements_decided ON replacements (decided_at) WHERE status IN ('done', 'ended');

-- How many bytes of an hour of an agent delivery_sums has.
ALTER TABLE agent_hours ADD COLUMN delivered INTEGER NOT NULL DEFAULT 0;
CREATE INDEX agent_hours_open ON agent_hours (agent_id, hour) WHERE up + down <> delivered;

-- +goose Down
DROP INDEX replacements_decided;
DROP INDEX agent_hours_open;
ALTER TABLE agent_hours DROP COLUMN delivered;
DROP TABLE delivery_sums;
DROP TABLE margin_sums;
