-- +goose Up

-- The hours of one session, for its chart and for the page of a report that it is on.
CREATE INDEX usage_hours_session ON usage_hours (session_id, hour);

-- +goose Down
DROP INDEX usage_hours_session;
