-- +goose Up

-- How far the entries of each agent are proved. The sums are those of the first entries, whose digest is a
-- chain: that of each entry covers all of its columns and the digest before it.
CREATE TABLE ledger_proofs (
    agent_id   TEXT    NOT NULL PRIMARY KEY,
    entries    INTEGER NOT NULL,
    trial      INTEGER NOT NULL,
    own        INTEGER NOT NULL,
    held_trial INTEGER NOT NULL,
    held_own   INTEGER NOT NULL,
    charged    INTEGER NOT NULL,
    refunded   INTEGER NOT NULL,
    recharged  INTEGER NOT NULL,
    digest     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE ledger_proofs;
