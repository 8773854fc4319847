-- +goose Up

-- What the report of margins has of UTC days, by what it is grouped by: a provider, a product or an agent. A day is its
-- start in microseconds since 1970. Entries are summed up to a number, and orders of the days, that service_values has.
-- Older programs go on with margin_days and delivery_days.
CREATE TABLE margin_sums (
    day      BIGINT NOT NULL,
    by_key   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    charged  BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    trial    BIGINT NOT NULL,
    given    BIGINT NOT NULL,
    cost     BIGINT NOT NULL,
    orders   BIGINT NOT NULL,
    PRIMARY KEY (by_key, day, name)
);
CREATE TABLE delivery_sums (
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
    PRIMARY KEY (by_key, day, name, provider, product_no, type, ordered, ips, days, charged)
);

-- What the report has of replacements.
CREATE INDEX replacements_decided ON replacements (decided_at) WHERE status IN ('done', 'ended');

-- How many bytes of an hour of an agent delivery_sums has.
ALTER TABLE agent_hours ADD COLUMN delivered BIGINT NOT NULL DEFAULT 0;
CREATE INDEX agent_hours_open ON agent_hours (agent_id, hour) WHERE up + down <> delivered;

-- +goose Down
DROP INDEX replacements_decided;
DROP INDEX agent_hours_open;
ALTER TABLE agent_hours DROP COLUMN delivered;
DROP TABLE delivery_sums;
DROP TABLE margin_sums;
