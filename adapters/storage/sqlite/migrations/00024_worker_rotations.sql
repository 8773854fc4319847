-- +goose Up

-- How often workers of a session were rotated, those that were removed included.
ALTER TABLE sessions ADD COLUMN worker_rotations INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sessions DROP COLUMN worker_rotations;
