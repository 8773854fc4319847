-- +goose Up

-- What an agent set for a session. labels are key:value, each on a line of its own with a line break
-- before the first and after the last. allowed_ips are networks with spaces; empty: any. top_up is JSON;
-- empty: off.
ALTER TABLE sessions ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN allowed_ips TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN top_up TEXT NOT NULL DEFAULT '';

-- How often the password was replaced, and how often open connections were closed.
ALTER TABLE sessions ADD COLUMN password_no BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cuts BIGINT NOT NULL DEFAULT 0;

-- What was added to the traffic: in all (bytes includes it), and what of it has another price or
-- another day than what is before it, as first byte:price:time with spaces.
ALTER TABLE sessions ADD COLUMN added_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN lots TEXT NOT NULL DEFAULT '';

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
ALTER TABLE sessions DROP COLUMN lots;
ALTER TABLE sessions DROP COLUMN added_bytes;
ALTER TABLE sessions DROP COLUMN cuts;
ALTER TABLE sessions DROP COLUMN password_no;
ALTER TABLE sessions DROP COLUMN top_up;
ALTER TABLE sessions DROP COLUMN allowed_ips;
ALTER TABLE sessions DROP COLUMN labels;
