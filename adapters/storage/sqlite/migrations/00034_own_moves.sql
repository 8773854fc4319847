-- +goose Up

-- What moved between two addresses of the service: final, and yet with a note. Older programs do not read it.
CREATE INDEX recharge_transfers_own ON recharge_transfers (network, block) WHERE state = 'final' AND note <> '';

-- +goose Down
DROP INDEX recharge_transfers_own;
