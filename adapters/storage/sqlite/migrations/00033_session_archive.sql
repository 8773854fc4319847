-- +goose Up

-- The workers of a session that ended long ago, all in one row in place of theirs. Older programs do not read
-- it, so min_compatible becomes 33 with the first row, and there is none before the time below: until then a
-- step back to them works.
CREATE TABLE session_archive (
    session     INTEGER NOT NULL PRIMARY KEY, -- sessions.seq
    at          INTEGER NOT NULL,
    workers     INTEGER NOT NULL, -- how many
    up          INTEGER NOT NULL, -- the sums of theirs
    down        INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    data        BLOB    NOT NULL
) STRICT;

INSERT INTO service_values (name, value) VALUES ('archive-from',
    CAST(CAST(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + 604800000000 AS TEXT) AS BLOB))
    ON CONFLICT (name) DO NOTHING; -- in a week, in microseconds since 1970

-- +goose Down
DROP TABLE session_archive;
DELETE FROM service_values WHERE name = 'archive-from';
