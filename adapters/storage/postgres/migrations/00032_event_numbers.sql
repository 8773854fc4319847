-- +goose NO TRANSACTION
-- +goose Up

-- Each statement may run again, should a later one fail. None holds the lock of one table while it waits for that
-- of another.

-- The number of the last event of a session, beside its health, so that a batch does not look it up in every day
-- of the event log. NULL if it is not known; then it is looked up.
ALTER TABLE session_health ADD COLUMN IF NOT EXISTS last_no BIGINT;

-- Batches keep the number themselves and say so by the setting. It is kept for everyone else: units that run
-- alone, and older programs, which do not know of it. So min_compatible stays.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION keep_event_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE session_health SET last_no = NEW.last_no WHERE session = NEW.session;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

DROP TRIGGER IF EXISTS event_chunks_number ON event_chunks;
CREATE TRIGGER event_chunks_number AFTER INSERT ON event_chunks FOR EACH ROW
    WHEN (current_setting('agentproxy.numbered', true) IS DISTINCT FROM 'yes') EXECUTE FUNCTION keep_event_number();

-- +goose Down
DROP TRIGGER IF EXISTS event_chunks_number ON event_chunks;
DROP FUNCTION IF EXISTS keep_event_number;
ALTER TABLE session_health DROP COLUMN IF EXISTS last_no;
