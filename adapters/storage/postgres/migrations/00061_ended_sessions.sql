-- +goose NO TRANSACTION
-- +goose Up

-- Sessions that have ended are found by their status and their product; those that have not are few, and in
-- sessions_open. So a purchase writes two indexes less. Each statement may run again, should a later one fail. Older
-- programs name no index, so min_compatible stays.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS sessions_ended_status;
CREATE INDEX CONCURRENTLY sessions_ended_status ON sessions (agent_id, status, ord)
    WHERE status IN ('terminated', 'expired', 'failed');
DROP INDEX CONCURRENTLY IF EXISTS sessions_status;
ALTER INDEX sessions_ended_status RENAME TO sessions_status;
DROP INDEX CONCURRENTLY IF EXISTS sessions_ended_product;
CREATE INDEX CONCURRENTLY sessions_ended_product ON sessions (agent_id, product_no, status, ord)
    WHERE status IN ('terminated', 'expired', 'failed');
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
ALTER INDEX sessions_ended_product RENAME TO sessions_product;
RESET lock_timeout;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
CREATE INDEX CONCURRENTLY sessions_product ON sessions (agent_id, product_no, status, ord);
DROP INDEX CONCURRENTLY IF EXISTS sessions_status;
CREATE INDEX CONCURRENTLY sessions_status ON sessions (agent_id, status, ord);
