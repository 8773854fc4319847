-- +goose Up

-- The entries of each agent up to ledger_counted, summed by UTC month: by type, and by session. A month is its start
-- in microseconds since 1970.
CREATE TABLE ledger_counted (
    agent_id TEXT NOT NULL PRIMARY KEY,
    entries  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_months (
    agent_id TEXT NOT NULL,
    month    INTEGER NOT NULL,
    type     TEXT NOT NULL,
    moved    INTEGER NOT NULL,
    revenue  INTEGER NOT NULL,
    PRIMARY KEY (agent_id, month, type)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_month_sessions (
    agent_id TEXT NOT NULL,
    month    INTEGER NOT NULL,
    ord      INTEGER NOT NULL,
    held     INTEGER NOT NULL,
    charged  INTEGER NOT NULL,
    released INTEGER NOT NULL,
    refunded INTEGER NOT NULL,
    moved    INTEGER NOT NULL,
    PRIMARY KEY (agent_id, month, ord)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE ledger_month_sessions;
DROP TABLE ledger_months;
DROP TABLE ledger_counted;
