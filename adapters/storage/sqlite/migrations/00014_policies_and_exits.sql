-- +goose Up

-- The rules that agents set for their sessions. body is JSON of allow, deny and ports.
CREATE TABLE session_policies (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
    mode       TEXT NOT NULL,
    body       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who used which exit: a row for each batch of connections that a replica noted. at is when the
-- batch was stored; what it is about happened before.
CREATE TABLE exit_log (
    seq     INTEGER NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    replica TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE INDEX exit_log_at ON exit_log (at);

-- Days of the exit log that are kept from deletion: from inclusive, to exclusive.
CREATE TABLE exit_holds (
    seq        INTEGER NOT NULL PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    from_at    INTEGER NOT NULL,
    to_at      INTEGER NOT NULL,
    operator   TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL -- 0: it holds
) STRICT;

-- Who looked into the exit log, for what and why. No row is changed or deleted.
CREATE TABLE exit_lookups (
    seq       INTEGER NOT NULL PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE,
    at        INTEGER NOT NULL,
    operator  TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    exit_ip   TEXT    NOT NULL,
    exit_port INTEGER NOT NULL, -- 0: any
    target    TEXT    NOT NULL, -- empty: any
    used_at   INTEGER NOT NULL,
    within    INTEGER NOT NULL, -- microseconds
    found     INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE exit_lookups;
DROP TABLE exit_holds;
DROP TABLE exit_log;
DROP TABLE session_policies;
