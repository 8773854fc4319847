-- +goose Up

-- What calm leases have used since they were renewed, in parts of a replica.
CREATE TABLE lease_reports (
    replica TEXT    NOT NULL,
    part    INTEGER NOT NULL,
    ids     BLOB    NOT NULL,
    counts  BLOB    NOT NULL,
    PRIMARY KEY (replica, part)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE lease_reports;
