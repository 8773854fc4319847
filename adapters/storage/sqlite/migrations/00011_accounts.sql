-- +goose Up

-- Who an account is, as far as it is known. registered_from is an address of 16 bytes, empty when it
-- was not kept; verified_for is the operator's evidence, empty while there is none.
ALTER TABLE agents ADD COLUMN verified_for TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN registered_from BLOB NOT NULL DEFAULT x'';
ALTER TABLE agents ADD COLUMN registered_with TEXT NOT NULL DEFAULT ''; -- the User-Agent header

CREATE INDEX agents_registered_from ON agents (registered_from) WHERE length(registered_from) > 0;
CREATE INDEX agents_registered_at ON agents (created_at) WHERE length(registered_from) > 0;

-- What is known of the first key, whose hash is agents.key_hash. 0 and '' are of accounts that are
-- older than these columns.
ALTER TABLE agents ADD COLUMN key_hint TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN key_created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN key_used_at INTEGER NOT NULL DEFAULT 0;

-- The further keys of accounts, and first keys that were replaced and end soon.
CREATE TABLE api_keys (
    seq         INTEGER NOT NULL PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    agent_id    TEXT    NOT NULL REFERENCES agents (id),
    name        TEXT    NOT NULL,
    hash        BLOB    NOT NULL UNIQUE,
    hint        TEXT    NOT NULL,
    permissions TEXT    NOT NULL, -- with spaces; empty: all
    replaced    INTEGER NOT NULL CHECK (replaced IN (0, 1)),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL, -- 0: never
    used_at     INTEGER NOT NULL
) STRICT;

CREATE INDEX api_keys_agent ON api_keys (agent_id, seq);

-- Whether own money was ever credited, by a transfer or by an adjustment.
ALTER TABLE wallets ADD COLUMN credited INTEGER NOT NULL DEFAULT 0 CHECK (credited IN (0, 1));
UPDATE wallets SET credited = 1 WHERE funded = 1 OR agent_id IN (
    SELECT agent_id FROM ledger_entries WHERE type = 'adjustment' AND own > 0);

-- What of the trial was granted on a UTC day: to all accounts (scope total, millionths of a dollar),
-- and from one network (scope network and the network, accounts).
CREATE TABLE trial_grants (
    day     INTEGER NOT NULL,
    scope   TEXT    NOT NULL,
    granted INTEGER NOT NULL CHECK (granted >= 0),
    PRIMARY KEY (day, scope)
) STRICT, WITHOUT ROWID;

-- An exit that registers an account is found by its address alone.
CREATE INDEX static_addresses_ip ON static_addresses (ip);

-- +goose Down
DROP INDEX static_addresses_ip;
DROP TABLE trial_grants;
ALTER TABLE wallets DROP COLUMN credited;
DROP TABLE api_keys;
DROP INDEX agents_registered_at;
DROP INDEX agents_registered_from;
ALTER TABLE agents DROP COLUMN key_used_at;
ALTER TABLE agents DROP COLUMN key_created_at;
ALTER TABLE agents DROP COLUMN key_hint;
ALTER TABLE agents DROP COLUMN registered_with;
ALTER TABLE agents DROP COLUMN registered_from;
ALTER TABLE agents DROP COLUMN verified_for;
