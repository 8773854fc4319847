-- +goose Up

-- Sessions that have ended are found by their status and their product; those that have not are few, and in
-- sessions_open. So a purchase writes two indexes less, and an end has no entries to remove. The words are those that
-- queries repeat.
DROP INDEX sessions_status;
CREATE INDEX sessions_status ON sessions (agent_id, status, ord)
    WHERE status = 'terminated' OR status = 'expired' OR status = 'failed';
DROP INDEX sessions_product;
CREATE INDEX sessions_product ON sessions (agent_id, product_no, status, ord)
    WHERE status = 'terminated' OR status = 'expired' OR status = 'failed';

-- +goose Down
DROP INDEX sessions_product;
CREATE INDEX sessions_product ON sessions (agent_id, product_no, status, ord);
DROP INDEX sessions_status;
CREATE INDEX sessions_status ON sessions (agent_id, status, ord);
