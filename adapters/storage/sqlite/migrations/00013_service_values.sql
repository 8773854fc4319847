-- +goose Up

-- What the service notes about itself, such as the check value of its root secret.
CREATE TABLE service_values (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE service_values;
