-- +goose Up

-- What was added to the traffic of a session and what it adds by itself, as JSON; empty: nothing.
ALTER TABLE sessions ADD COLUMN top_ups TEXT NOT NULL DEFAULT '';

-- Each addition to the traffic of a session, from which the proof of the ledger recomputes its holds
-- and charges. Additions at one price that follow each other are one run, which begins after start bytes.
CREATE TABLE session_topups (
    agent_id   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    no         INTEGER NOT NULL,
    run        INTEGER NOT NULL, -- 0: at the price that the session was created with
    start      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    price      INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (agent_id, session_id, no)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE session_topups;
ALTER TABLE sessions DROP COLUMN top_ups;
