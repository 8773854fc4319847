-- +goose Up

-- What is used of limits that several processes share; see domain/ratelimit. tat
-- is microseconds since 1970 UTC by this server's clock. took is what the last
-- asker was given: a statement returns of a row only what it has written. A crash
-- may empty the table, which frees the limits, so it costs no log and no wait for
-- a disk. Rows are written over again and again, and find room on their page.
CREATE UNLOGGED TABLE rate_limits (
    key  TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
    tat  BIGINT NOT NULL,
    took BIGINT NOT NULL
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE rate_limits;
