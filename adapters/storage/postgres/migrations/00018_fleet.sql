-- +goose Up

-- The oldest schema whose programs work with this one. A migration that takes away or redefines
-- what they use sets it to its own number; one that only adds leaves it as it is.
CREATE TABLE schema_state (
    id             SMALLINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    min_compatible BIGINT   NOT NULL
);

INSERT INTO schema_state (min_compatible) VALUES (18);

-- The replicas that run jobs. One that was not seen for seconds is dead.
CREATE TABLE replicas (
    id      TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE replicas;
DROP TABLE schema_state;
