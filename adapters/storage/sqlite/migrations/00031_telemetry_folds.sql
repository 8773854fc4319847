-- +goose Up

-- How far the queues of telemetry are folded into this database; empty without such queues.
CREATE TABLE telemetry_folds (
    queue  TEXT    NOT NULL PRIMARY KEY,
    stream TEXT    NOT NULL, -- tells one that was made anew
    seq    INTEGER NOT NULL  -- of the last call that was folded
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE telemetry_folds;
