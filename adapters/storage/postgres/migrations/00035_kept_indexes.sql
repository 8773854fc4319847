-- +goose Up

-- 1 once the next index is kept outside the database too, so that a copy of the database without that file is known
-- to be one. Older programs neither read nor write it.
ALTER TABLE recharge_keys ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE recharge_keys DROP COLUMN kept;
