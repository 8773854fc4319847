-- +goose Up

-- The oldest schema whose programs work with this one. A migration that takes away or redefines
-- what they use sets it to its own number; one that only adds leaves it as it is.
CREATE TABLE schema_state (
    id             INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    min_compatible INTEGER NOT NULL
) STRICT;

INSERT INTO schema_state (min_compatible) VALUES (18);

-- The day since 1970 of the newest event of a chunk, as PostgreSQL has it.
ALTER TABLE event_chunks ADD COLUMN day INTEGER NOT NULL DEFAULT 0;

-- The filters of a list, and the count of what they leave.
CREATE INDEX sessions_status ON sessions (agent_id, status, ord);
CREATE INDEX sessions_product ON sessions (agent_id, product_no, ord);

-- +goose Down
DROP INDEX sessions_product;
DROP INDEX sessions_status;
ALTER TABLE event_chunks DROP COLUMN day;
DROP TABLE schema_state;
