-- +goose Up

-- The entries of each agent up to ledger_counted, summed by UTC month: by type, and by session. A month is its start
-- in microseconds since 1970.
CREATE TABLE ledger_counted (
    agent_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    entries  BIGINT NOT NULL
);
CREATE TABLE ledger_months (
    agent_id TEXT COLLATE "C" NOT NULL,
    month    BIGINT NOT NULL,
    type     TEXT COLLATE "C" NOT NULL,
    moved    BIGINT NOT NULL,
    revenue  BIGINT NOT NULL,
    PRIMARY KEY (agent_id, month, type)
);
CREATE TABLE ledger_month_sessions (
    agent_id TEXT COLLATE "C" NOT NULL,
    month    BIGINT NOT NULL,
    ord      BIGINT NOT NULL,
    held     BIGINT NOT NULL,
    charged  BIGINT NOT NULL,
    released BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    moved    BIGINT NOT NULL,
    PRIMARY KEY (agent_id, month, ord)
);

-- +goose Down
DROP TABLE ledger_month_sessions;
DROP TABLE ledger_months;
DROP TABLE ledger_counted;
