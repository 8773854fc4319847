-- +goose Up

-- The sessions that a key bought, of which it has its own lists and sums.
CREATE INDEX sessions_buyer ON sessions (agent_id, bought_by, ord);

-- +goose Down
DROP INDEX sessions_buyer;
