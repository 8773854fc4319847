-- +goose Up

-- ord counts 1, 2, 3 within an agent, so that a page is found and a list is
-- counted without walking it. Rows are wide, so the key of the table is a
-- number and what is kept beside a session refers to that.
CREATE TABLE sessions (
    seq               INTEGER NOT NULL PRIMARY KEY,
    id                TEXT    NOT NULL UNIQUE,
    agent_id          TEXT    NOT NULL,
    ord               INTEGER NOT NULL,
    type              TEXT    NOT NULL,
    product_no        TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,

    status            TEXT    NOT NULL,
    reason            TEXT    NOT NULL,
    provider          TEXT    NOT NULL,
    quantity          INTEGER NOT NULL,
    days              INTEGER NOT NULL,
    bytes             INTEGER NOT NULL,           -- bought; 0: no limit
    price             INTEGER NOT NULL,
    protocol          TEXT    NOT NULL,
    country           TEXT    NOT NULL,
    city              TEXT    NOT NULL,
    rotation_mode     TEXT    NOT NULL,
    rotation_interval INTEGER NOT NULL,           -- microseconds
    rotations         INTEGER NOT NULL,
    rotated_at        INTEGER NOT NULL,
    rotation_next_at  INTEGER NOT NULL,
    exits             TEXT    NOT NULL,           -- addresses with commas
    held_trial        INTEGER NOT NULL CHECK (held_trial >= 0),
    held_own          INTEGER NOT NULL CHECK (held_own >= 0),
    charged_trial     INTEGER NOT NULL,
    charged_own       INTEGER NOT NULL,
    refunded_trial    INTEGER NOT NULL,
    refunded_own      INTEGER NOT NULL,
    failure_code      TEXT    NOT NULL,
    failure_message   TEXT    NOT NULL,
    activated_at      INTEGER NOT NULL,
    expires_at        INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,

    up                INTEGER NOT NULL DEFAULT 0 CHECK (up >= 0),
    down              INTEGER NOT NULL DEFAULT 0 CHECK (down >= 0),
    connections       INTEGER NOT NULL DEFAULT 0,
    leased            INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
    usage_at          INTEGER NOT NULL DEFAULT 0,
    settle_at         INTEGER NOT NULL DEFAULT 0,

    CHECK (bytes = 0 OR up + down + leased <= bytes)
) STRICT;

CREATE UNIQUE INDEX sessions_agent ON sessions (agent_id, ord, status, type, product_no);
CREATE INDEX sessions_open ON sessions (agent_id, ord)
    WHERE status IN ('creating', 'active') OR held_trial + held_own > 0;
CREATE INDEX sessions_creating ON sessions (created_at) WHERE status = 'creating';
CREATE INDEX sessions_time_due ON sessions (expires_at) WHERE status = 'active' AND type = 'static';
CREATE INDEX sessions_settle_due ON sessions (settle_at) WHERE settle_at > 0;

CREATE TABLE session_health (
    session INTEGER NOT NULL PRIMARY KEY, -- sessions.seq
    state   BLOB    NOT NULL
) STRICT;

CREATE TABLE leases (
    session_id  TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    replica     TEXT    NOT NULL,
    granted     INTEGER NOT NULL,
    up          INTEGER NOT NULL,
    down        INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    renewed_at  INTEGER NOT NULL,
    PRIMARY KEY (session_id, id)
) STRICT, WITHOUT ROWID;

-- The event feed: a row for each call that added events. last_no is the number
-- of its last event within the session.
CREATE TABLE event_chunks (
    seq     INTEGER NOT NULL PRIMARY KEY,
    session INTEGER NOT NULL, -- sessions.seq
    last_no INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX event_chunks_session ON event_chunks (session, last_no, n, last_at);

-- What an agent's sessions went through, ever.
CREATE TABLE counters (
    agent_id  TEXT    NOT NULL PRIMARY KEY,
    reported  INTEGER NOT NULL,
    scored    INTEGER NOT NULL,
    good      INTEGER NOT NULL,
    rotations INTEGER NOT NULL,
    bytes     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    agent_id   TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    request    BLOB    NOT NULL,
    resource   TEXT    NOT NULL,
    status     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent_id, path, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE static_addresses (
    provider   TEXT NOT NULL,
    ip         TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (provider, ip)
) STRICT, WITHOUT ROWID;

CREATE INDEX static_addresses_session ON static_addresses (session_id);

CREATE TABLE changes (
    seq        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    agent_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE changes;
DROP TABLE static_addresses;
DROP TABLE idempotency_keys;
DROP TABLE counters;
DROP TABLE event_chunks;
DROP TABLE leases;
DROP TABLE session_health;
DROP TABLE sessions;
