-- +goose Up

-- How far the queues of telemetry are folded into this database; empty without such queues.
CREATE TABLE telemetry_folds (
    queue  TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    stream TEXT   NOT NULL, -- tells one that was made anew
    seq    BIGINT NOT NULL  -- of the last call that was folded
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE telemetry_folds;
