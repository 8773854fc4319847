-- +goose NO TRANSACTION
-- +goose Up

-- The filters of a list, and the count of what they leave. Writers go on while they are built, which
-- waits for older transactions. What a failed run left is removed first.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS sessions_status;
CREATE INDEX CONCURRENTLY sessions_status ON sessions (agent_id, status, ord);
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
CREATE INDEX CONCURRENTLY sessions_product ON sessions (agent_id, product_no, ord);
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
DROP INDEX CONCURRENTLY IF EXISTS sessions_status;
