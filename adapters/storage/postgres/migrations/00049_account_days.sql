-- +goose Up

-- What entries brought the accounts of the service on each UTC day: those up to a number that service_values has. A day
-- is its start in microseconds since 1970.
CREATE TABLE account_days (
    day     BIGINT NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    counter BIGINT NOT NULL,
    PRIMARY KEY (day, account)
);

-- +goose Down
DROP TABLE account_days;
