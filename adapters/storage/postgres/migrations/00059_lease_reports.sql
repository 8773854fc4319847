-- +goose Up

-- What calm leases have used since they were renewed, in parts of a replica. The counters come last and every value is
-- kept as it is, so that a new version of a row differs from the last one in its end alone, and lies beside it.
CREATE TABLE lease_reports (
    replica TEXT    COLLATE "C" NOT NULL,
    part    INTEGER NOT NULL,
    ids     BYTEA   NOT NULL,
    counts  BYTEA   NOT NULL,
    PRIMARY KEY (replica, part)
) WITH (fillfactor = 30);
ALTER TABLE lease_reports ALTER COLUMN ids SET STORAGE PLAIN, ALTER COLUMN counts SET STORAGE PLAIN;

-- +goose Down
DROP TABLE lease_reports;
