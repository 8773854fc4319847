-- +goose Up

-- The next index of each account key, so that none is given out twice.
CREATE TABLE recharge_keys (
    network     TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    next        INTEGER NOT NULL CHECK (next <= 2147483648),
    PRIMARY KEY (network, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE recharge_addresses (
    seq          INTEGER NOT NULL PRIMARY KEY,
    network      TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    idx          INTEGER NOT NULL,
    agent_id     TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    read_through INTEGER NOT NULL, -- by the clock of the chain
    audited_at   INTEGER NOT NULL,
    drift        INTEGER NOT NULL,
    UNIQUE (network, address),
    UNIQUE (network, fingerprint, idx),
    UNIQUE (network, fingerprint, agent_id)
) STRICT;

CREATE INDEX recharge_addresses_audit ON recharge_addresses (network, audited_at, address);
CREATE INDEX recharge_addresses_agent ON recharge_addresses (network, agent_id, seq);

CREATE TABLE recharge_orders (
    seq        INTEGER NOT NULL PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    agent_id   TEXT    NOT NULL,
    network    TEXT    NOT NULL,
    address    TEXT    NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount > 0),
    received   INTEGER NOT NULL CHECK (received >= 0),
    status     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    paid_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX recharge_orders_agent ON recharge_orders (agent_id, seq, status);
CREATE INDEX recharge_orders_status ON recharge_orders (status, seq);
CREATE INDEX recharge_orders_payable ON recharge_orders (agent_id, status, network, expires_at);
CREATE INDEX recharge_orders_window ON recharge_orders (network, expires_at, address);
CREATE INDEX recharge_orders_open ON recharge_orders (network, status, expires_at, agent_id, address)
    WHERE status IN ('pending', 'confirming');

-- What arrived. A final transfer was credited and is as fixed as the ledger.
CREATE TABLE recharge_transfers (
    seq          INTEGER NOT NULL PRIMARY KEY,
    network      TEXT    NOT NULL,
    tx_id        TEXT    NOT NULL,
    log_index    INTEGER NOT NULL,
    from_address TEXT    NOT NULL,
    to_address   TEXT    NOT NULL,
    amount       INTEGER NOT NULL,
    block        INTEGER NOT NULL,
    block_time   INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    note         TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL, -- empty: only from_address is ours
    order_id     TEXT    NOT NULL, -- empty: none
    first_seen   INTEGER NOT NULL,
    UNIQUE (network, tx_id, log_index),
    CHECK (state <> 'final' OR amount > 0)
) STRICT;

CREATE INDEX recharge_transfers_to ON recharge_transfers (network, to_address, state, block_time, amount);
CREATE INDEX recharge_transfers_from ON recharge_transfers (network, from_address, state, block_time, amount);
CREATE INDEX recharge_transfers_order ON recharge_transfers (order_id) WHERE order_id <> '';
CREATE INDEX recharge_transfers_seen_agent ON recharge_transfers (network, agent_id, block, log_index, tx_id)
    WHERE state = 'seen';
CREATE INDEX recharge_transfers_seen_block ON recharge_transfers (network, block, log_index, tx_id)
    WHERE state = 'seen';

-- +goose StatementBegin
CREATE TRIGGER recharge_transfers_keep BEFORE UPDATE ON recharge_transfers WHEN OLD.state = 'final'
BEGIN
    SELECT RAISE(ABORT, 'a final transfer is never changed');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER recharge_transfers_stay BEFORE DELETE ON recharge_transfers WHEN OLD.state = 'final'
BEGIN
    SELECT RAISE(ABORT, 'a final transfer is never removed');
END;
-- +goose StatementEnd

-- How far each chain was read.
CREATE TABLE recharge_marks (
    network      TEXT    NOT NULL PRIMARY KEY,
    final_number INTEGER NOT NULL,
    final_time   INTEGER NOT NULL,
    latest       INTEGER NOT NULL,
    read_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What webhooks are told. The number of a removed event is never used again.
CREATE TABLE outbox (
    seq      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id       TEXT    NOT NULL UNIQUE,
    agent_id TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    data     TEXT    NOT NULL -- JSON
) STRICT;

CREATE INDEX outbox_agent ON outbox (agent_id, seq);
CREATE INDEX outbox_age ON outbox (at);

-- The development chain. It has one genesis.
CREATE TABLE devchain_genesis (
    id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    at    INTEGER NOT NULL,
    every INTEGER NOT NULL CHECK (every > 0) -- microseconds
) STRICT;

CREATE TABLE devchain_transfers (
    seq          INTEGER NOT NULL PRIMARY KEY,
    network      TEXT    NOT NULL,
    tx_id        TEXT    NOT NULL,
    log_index    INTEGER NOT NULL,
    from_address TEXT    NOT NULL,
    to_address   TEXT    NOT NULL,
    amount       INTEGER NOT NULL,
    block        INTEGER NOT NULL,
    block_time   INTEGER NOT NULL,
    UNIQUE (tx_id, log_index)
) STRICT;

CREATE INDEX devchain_transfers_block ON devchain_transfers (block);
CREATE INDEX devchain_transfers_to ON devchain_transfers (to_address, block);
CREATE INDEX devchain_transfers_from ON devchain_transfers (from_address, block);

-- +goose Down
DROP TABLE devchain_transfers;
DROP TABLE devchain_genesis;
DROP TABLE outbox;
DROP TABLE recharge_marks;
DROP TABLE recharge_transfers;
DROP TABLE recharge_orders;
DROP TABLE recharge_addresses;
DROP TABLE recharge_keys;
