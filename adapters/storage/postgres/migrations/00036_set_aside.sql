-- +goose Up

-- Final transfers that could not be booked. Others go on; these are tried again until they are.
CREATE TABLE recharge_aside (
    network   TEXT COLLATE "C" NOT NULL,
    tx_id     TEXT COLLATE "C" NOT NULL,
    log_index BIGINT NOT NULL,
    agent_id  TEXT COLLATE "C" NOT NULL,
    amount    BIGINT NOT NULL,
    block     BIGINT NOT NULL,
    reason    TEXT NOT NULL,
    set_at    BIGINT NOT NULL,
    tried_at  BIGINT NOT NULL,
    tries     BIGINT NOT NULL,
    PRIMARY KEY (network, tx_id, log_index)
);

-- +goose Down
DROP TABLE recharge_aside;
