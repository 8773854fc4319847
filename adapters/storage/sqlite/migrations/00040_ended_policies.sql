-- +goose Up

-- Rules end with their session from now on, once it is counted.
DELETE FROM session_policies WHERE session_id IN (SELECT id FROM sessions WHERE counted = 1);

-- +goose Down
SELECT 1;
