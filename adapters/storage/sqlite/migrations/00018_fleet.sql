-- +goose Up

-- The oldest schema whose programs work with this one. A migration that takes away or redefines
-- what they use sets it to its own number; one that only adds leaves it as it is.
CREATE TABLE schema_state (
    id             INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    min_compatible INTEGER NOT NULL
) STRICT;

INSERT INTO schema_state (min_compatible) VALUES (18);

-- +goose Down
DROP TABLE schema_state;
