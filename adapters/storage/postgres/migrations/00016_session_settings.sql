-- +goose Up

-- What an agent set for a session. labels are key:value, each on a line of its own with a line break
-- before the first and after the last. allowed_ips are networks with spaces; empty: any.
ALTER TABLE sessions ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN allowed_ips TEXT NOT NULL DEFAULT '';

-- How often the password was replaced, and how often open connections were closed.
ALTER TABLE sessions ADD COLUMN password_no BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cuts BIGINT NOT NULL DEFAULT 0;

-- Who connected to a session. An empty address is all beyond those that are kept apart.
CREATE TABLE session_clients (
    session     BIGINT NOT NULL, -- sessions.seq
    address     TEXT COLLATE "C" NOT NULL,
    first_at    BIGINT NOT NULL,
    last_at     BIGINT NOT NULL,
    connections BIGINT NOT NULL,
    bytes       BIGINT NOT NULL,
    PRIMARY KEY (session, address)
);

CREATE INDEX session_clients_age ON session_clients (last_at);

-- What a session connected to on a UTC day. An empty host is all beyond those that are kept apart.
CREATE TABLE session_hosts (
    session     BIGINT NOT NULL, -- sessions.seq
    day         BIGINT NOT NULL,
    host        TEXT COLLATE "C" NOT NULL,
    connections BIGINT NOT NULL,
    failures    BIGINT NOT NULL,
    bytes       BIGINT NOT NULL,
    PRIMARY KEY (session, day, host)
);

CREATE INDEX session_hosts_day ON session_hosts (day);

-- +goose Down
DROP TABLE session_hosts;
DROP TABLE session_clients;
ALTER TABLE sessions DROP COLUMN cuts;
ALTER TABLE sessions DROP COLUMN password_no;
ALTER TABLE sessions DROP COLUMN allowed_ips;
ALTER TABLE sessions DROP COLUMN labels;
