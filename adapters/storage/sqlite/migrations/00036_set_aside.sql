-- +goose Up

-- Final transfers that could not be booked. Others go on; these are tried again until they are.
CREATE TABLE recharge_aside (
    network   TEXT NOT NULL,
    tx_id     TEXT NOT NULL,
    log_index INTEGER NOT NULL,
    agent_id  TEXT NOT NULL,
    amount    INTEGER NOT NULL,
    block     INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    set_at    INTEGER NOT NULL,
    tried_at  INTEGER NOT NULL,
    tries     INTEGER NOT NULL,
    PRIMARY KEY (network, tx_id, log_index)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE recharge_aside;
