-- +goose NO TRANSACTION
-- +goose Up

-- A day of the event log has one index, its key of session and number. That of the order of all rows is needed where
-- they are removed in that order: in the default partition. One day after the other is locked, for milliseconds, so that
-- nothing holds one while it waits for another. A day that an older program makes has both. Run again, it goes on.
-- +goose StatementBegin
DO $$ DECLARE d RECORD; BEGIN
    FOR d IN SELECT t.relname AS name, x.relname AS key FROM pg_inherits i JOIN pg_class t ON t.oid = i.inhrelid
        JOIN pg_index n ON n.indrelid = t.oid AND n.indisunique AND NOT n.indisprimary JOIN pg_class x ON x.oid = n.indexrelid
        WHERE i.inhparent = 'event_chunks'::regclass AND t.relname <> 'event_chunks_rest' LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', d.name, d.name || '_pkey');
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I PRIMARY KEY USING INDEX %I', d.name, d.name || '_pkey', d.key);
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$ DECLARE d TEXT; BEGIN
    FOR d IN SELECT t.relname FROM pg_inherits i JOIN pg_class t ON t.oid = i.inhrelid
        WHERE i.inhparent = 'event_chunks'::regclass AND t.relname <> 'event_chunks_rest' LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', d, d || '_pkey');
        EXECUTE format('CREATE UNIQUE INDEX ON %I (session, last_no) INCLUDE (n, last_at)', d);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I PRIMARY KEY (seq)', d, d || '_pkey');
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
