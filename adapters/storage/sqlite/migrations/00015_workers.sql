-- +goose Up

-- The workers of dynamic sessions: what they were asked for, the exit of each, and what passed
-- through it. seq is never given twice, so what a replica counts for a removed worker is not
-- counted for a later one of its name.
CREATE TABLE workers (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    session     INTEGER  NOT NULL, -- sessions.seq
    name        TEXT     NOT NULL,
    country     TEXT     NOT NULL,
    city        TEXT     NOT NULL,
    ttl         INTEGER  NOT NULL, -- microseconds; 0: none
    strict      INTEGER  NOT NULL, -- 1: yes
    uniq        INTEGER  NOT NULL,
    max_bytes   INTEGER  NOT NULL, -- 0: no limit
    exit_ip     TEXT     NOT NULL, -- empty: not known
    turn        INTEGER  NOT NULL,
    assigned_at INTEGER  NOT NULL,
    lost        INTEGER  NOT NULL,
    changeable  INTEGER  NOT NULL,
    rotations   INTEGER  NOT NULL,
    created_at  INTEGER  NOT NULL,

    error_at    INTEGER  NOT NULL DEFAULT 0,
    error_code  TEXT     NOT NULL DEFAULT '',
    up          INTEGER  NOT NULL DEFAULT 0 CHECK (up >= 0),
    down        INTEGER  NOT NULL DEFAULT 0 CHECK (down >= 0),
    connections INTEGER  NOT NULL DEFAULT 0 CHECK (connections >= 0),
    used_at     INTEGER  NOT NULL DEFAULT 0,
    UNIQUE (session, name)
) STRICT;

CREATE TABLE worker_health (
    worker INTEGER NOT NULL PRIMARY KEY, -- workers.seq
    state  BLOB    NOT NULL
) STRICT;

-- What of a lease was reported by worker, cumulative.
ALTER TABLE leases ADD COLUMN workers BLOB NOT NULL DEFAULT x'';

-- +goose Down
ALTER TABLE leases DROP COLUMN workers;
DROP TABLE worker_health;
DROP TABLE workers;
