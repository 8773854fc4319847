-- +goose Up

-- How far the entries of each agent are proved. The sums are those of the first entries, whose digest is a
-- chain: that of each entry covers all of its columns and the digest before it.
CREATE TABLE ledger_proofs (
    agent_id   TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    entries    BIGINT NOT NULL,
    trial      BIGINT NOT NULL,
    own        BIGINT NOT NULL,
    held_trial BIGINT NOT NULL,
    held_own   BIGINT NOT NULL,
    charged    BIGINT NOT NULL,
    refunded   BIGINT NOT NULL,
    recharged  BIGINT NOT NULL,
    digest     TEXT   COLLATE "C" NOT NULL
);

-- +goose Down
DROP TABLE ledger_proofs;
