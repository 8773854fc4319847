-- +goose Up

-- What was measured of the exits that agents use, and when each is to be measured again. worker is empty for the
-- session's own exit; idx is the number of an address of a static session.
CREATE TABLE exit_measures (
    session_id  TEXT COLLATE "C" NOT NULL,
    worker      TEXT COLLATE "C" NOT NULL,
    idx         INTEGER NOT NULL,
    agent_id    TEXT COLLATE "C" NOT NULL,
    of_exit     TEXT NOT NULL,
    ip          TEXT NOT NULL,
    measured_at BIGINT NOT NULL,
    declared    TEXT NOT NULL,
    facts       TEXT NOT NULL,
    due_at      BIGINT NOT NULL,
    announced   SMALLINT NOT NULL,
    PRIMARY KEY (session_id, worker, idx)
);
CREATE INDEX exit_measures_due ON exit_measures (due_at);

-- +goose Down
DROP TABLE exit_measures;
