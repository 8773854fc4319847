-- +goose Up

-- A secret that was issued without the former one replaces no key until then; the former one proves the owner.
ALTER TABLE agents ADD COLUMN secret_held_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN former_secret_hash BLOB NOT NULL DEFAULT x'';

-- The key that issued a key, with which it ends; empty: not known.
ALTER TABLE api_keys ADD COLUMN parent TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE api_keys DROP COLUMN parent;
ALTER TABLE agents DROP COLUMN former_secret_hash;
ALTER TABLE agents DROP COLUMN secret_held_until;
