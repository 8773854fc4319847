-- +goose NO TRANSACTION
-- +goose Up

-- What moved between two addresses of the service: final, and yet with a note. Older programs do not read it.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS recharge_transfers_own;
CREATE INDEX CONCURRENTLY recharge_transfers_own ON recharge_transfers (network, block)
    WHERE state = 'final' AND note <> '';
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS recharge_transfers_own;
