-- +goose Up

-- The workers of a session that ended long ago, all in one row in place of theirs. Older programs do not read
-- it, so min_compatible becomes 33 with the first row, and there is none before the time below: until then a
-- step back to them works.
CREATE TABLE session_archive (
    session     BIGINT NOT NULL PRIMARY KEY, -- sessions.seq
    at          BIGINT NOT NULL,
    workers     BIGINT NOT NULL, -- how many
    up          BIGINT NOT NULL, -- the sums of theirs
    down        BIGINT NOT NULL,
    connections BIGINT NOT NULL,
    data        BYTEA  NOT NULL
);

INSERT INTO service_values (name, value) VALUES ('archive-from', convert_to(
    (floor(extract(epoch FROM clock_timestamp()))::bigint * 1000000 + 604800000000)::text, 'UTF8'))
    ON CONFLICT (name) DO NOTHING; -- in a week, in microseconds since 1970

-- +goose Down
DROP TABLE session_archive;
DELETE FROM service_values WHERE name = 'archive-from';
