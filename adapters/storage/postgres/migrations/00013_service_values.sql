-- +goose Up

-- What the service notes about itself, such as the check value of its root secret.
CREATE TABLE service_values (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

-- +goose Down
DROP TABLE service_values;
