-- +goose Up

-- What the exits of a session must be. Empty: every exit will do.
ALTER TABLE sessions ADD COLUMN require TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN require;
