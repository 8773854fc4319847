-- +goose NO TRANSACTION
-- +goose Up

-- Each statement may run again, should a later one fail.

-- How far the entries of each agent are proved. The sums are those of the first entries, whose digest is a
-- chain: that of each entry covers all of its columns and the digest before it.
CREATE TABLE IF NOT EXISTS ledger_proofs (
    agent_id   TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    entries    BIGINT NOT NULL,
    trial      BIGINT NOT NULL,
    own        BIGINT NOT NULL,
    held_trial BIGINT NOT NULL,
    held_own   BIGINT NOT NULL,
    charged    BIGINT NOT NULL,
    refunded   BIGINT NOT NULL,
    recharged  BIGINT NOT NULL,
    digest     TEXT   COLLATE "C" NOT NULL
);

-- The sums of usage_hours by agent and hour, apart for what is of no session. A row of usage_hours is in
-- them once counted is 1. last counts the sessions of which no later hour is in them.
CREATE TABLE IF NOT EXISTS agent_hours (
    agent_id    TEXT     COLLATE "C" NOT NULL,
    hour        BIGINT   NOT NULL,
    of_sessions SMALLINT NOT NULL CHECK (of_sessions IN (0, 1)),
    up          BIGINT   NOT NULL,
    down        BIGINT   NOT NULL,
    connections BIGINT   NOT NULL,
    charged     BIGINT   NOT NULL,
    refunded    BIGINT   NOT NULL,
    recharged   BIGINT   NOT NULL,
    last        BIGINT   NOT NULL,
    PRIMARY KEY (agent_id, hour, of_sessions)
);

ALTER TABLE usage_hours ADD COLUMN IF NOT EXISTS counted SMALLINT NOT NULL DEFAULT 0;

-- What is added late to an hour that is counted already.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_late_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agent_hours SET up = up + NEW.up - OLD.up, down = down + NEW.down - OLD.down,
        connections = connections + NEW.connections - OLD.connections, charged = charged + NEW.charged - OLD.charged,
        refunded = refunded + NEW.refunded - OLD.refunded, recharged = recharged + NEW.recharged - OLD.recharged
    WHERE agent_id = NEW.agent_id AND hour = NEW.hour
        AND of_sessions = CASE NEW.session_id WHEN '' THEN 0 ELSE 1 END;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

DROP TRIGGER IF EXISTS usage_hours_late ON usage_hours;
CREATE TRIGGER usage_hours_late AFTER UPDATE ON usage_hours
    FOR EACH ROW WHEN (OLD.counted = 1) EXECUTE FUNCTION count_late_usage();

-- How many sessions ended. A session is among them once counted is 1.
CREATE TABLE IF NOT EXISTS session_counts (
    agent_id   TEXT   COLLATE "C" NOT NULL,
    product_no TEXT   NOT NULL,
    type       TEXT   NOT NULL,
    status     TEXT   NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (agent_id, product_no, type, status)
);

ALTER TABLE sessions ADD COLUMN IF NOT EXISTS counted SMALLINT NOT NULL DEFAULT 0;

-- Each row of usage_hours is in two indexes: by session, and by hour, what is not counted yet first. Writers
-- go on while these are built.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS usage_hours_key;
CREATE UNIQUE INDEX CONCURRENTLY usage_hours_key ON usage_hours (agent_id, session_id, hour);
ALTER TABLE usage_hours DROP CONSTRAINT IF EXISTS usage_hours_pkey,
    ADD CONSTRAINT usage_hours_pkey PRIMARY KEY USING INDEX usage_hours_key;
DROP INDEX CONCURRENTLY IF EXISTS usage_hours_hour;
CREATE INDEX CONCURRENTLY usage_hours_hour ON usage_hours (counted, agent_id, hour, session_id);
DROP INDEX CONCURRENTLY IF EXISTS usage_hours_session;

-- Sessions that live, and those that ended and are not counted yet. What a session holds is in the condition of
-- no index, so that settlements change none.
DROP INDEX CONCURRENTLY IF EXISTS sessions_uncounted;
CREATE INDEX CONCURRENTLY sessions_uncounted ON sessions (status, agent_id, ord) WHERE counted = 0;
DROP INDEX CONCURRENTLY IF EXISTS sessions_open;
ALTER INDEX sessions_uncounted RENAME TO sessions_open;
DROP INDEX CONCURRENTLY IF EXISTS sessions_creating;

-- A list of a product and a status reads what both leave. Older programs find their tables and columns, so
-- min_compatible stays.
DROP INDEX CONCURRENTLY IF EXISTS sessions_sold;
CREATE INDEX CONCURRENTLY sessions_sold ON sessions (agent_id, product_no, status, ord);
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
ALTER INDEX sessions_sold RENAME TO sessions_product;
RESET lock_timeout;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_creating ON sessions (created_at) WHERE status = 'creating';
DROP INDEX CONCURRENTLY IF EXISTS sessions_product;
CREATE INDEX CONCURRENTLY sessions_product ON sessions (agent_id, product_no, ord);
DROP INDEX CONCURRENTLY IF EXISTS sessions_open;
CREATE INDEX CONCURRENTLY sessions_open ON sessions (agent_id, ord)
    WHERE status IN ('creating', 'active') OR held_trial + held_own > 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS usage_hours_session ON usage_hours (session_id, hour);
DROP INDEX CONCURRENTLY IF EXISTS usage_hours_key;
CREATE UNIQUE INDEX CONCURRENTLY usage_hours_key ON usage_hours (agent_id, hour, session_id);
ALTER TABLE usage_hours DROP CONSTRAINT IF EXISTS usage_hours_pkey,
    ADD CONSTRAINT usage_hours_pkey PRIMARY KEY USING INDEX usage_hours_key;
DROP INDEX CONCURRENTLY IF EXISTS usage_hours_hour;
DROP TRIGGER IF EXISTS usage_hours_late ON usage_hours;
DROP FUNCTION IF EXISTS count_late_usage;
ALTER TABLE sessions DROP COLUMN IF EXISTS counted;
DROP TABLE IF EXISTS session_counts;
ALTER TABLE usage_hours DROP COLUMN IF EXISTS counted;
DROP TABLE IF EXISTS agent_hours;
DROP TABLE IF EXISTS ledger_proofs;
