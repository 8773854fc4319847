-- +goose Up

-- The key that bought a session, and its name then; empty: not known.
ALTER TABLE sessions ADD COLUMN bought_by TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN buyer TEXT NOT NULL DEFAULT '';

-- How many keys of the agent have a row of key_wallets.
ALTER TABLE wallets ADD COLUMN restricted_keys BIGINT NOT NULL DEFAULT 0;

-- The keys that are restricted, by what, and what the sessions that they bought hold and have cost.
CREATE TABLE key_wallets (
    agent_id      TEXT     COLLATE "C" NOT NULL REFERENCES agents (id),
    key_id        TEXT     COLLATE "C" NOT NULL,
    budget_total  BIGINT, -- NULL: no limit
    budget_daily  BIGINT,
    per_purchase  BIGINT,
    products      TEXT     NOT NULL, -- with spaces; empty: all
    max_sessions  BIGINT   NOT NULL, -- 0: no limit
    own           SMALLINT NOT NULL CHECK (own IN (0, 1)),
    held          BIGINT   NOT NULL CHECK (held >= 0),
    spent         BIGINT   NOT NULL,
    live_sessions BIGINT   NOT NULL,
    spent_day     BIGINT   NOT NULL,
    spent_today   BIGINT   NOT NULL CHECK (spent_today >= 0),
    PRIMARY KEY (agent_id, key_id)
) WITH (fillfactor = 50); -- rows change often, and then stay on their page

-- +goose Down
DROP TABLE key_wallets;
ALTER TABLE wallets DROP COLUMN restricted_keys;
ALTER TABLE sessions DROP COLUMN buyer;
ALTER TABLE sessions DROP COLUMN bought_by;
