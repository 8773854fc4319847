-- +goose Up

-- Own money that positive adjustments credited, ever: with what was recharged, what the tier goes by.
ALTER TABLE wallets ADD COLUMN adjusted BIGINT NOT NULL DEFAULT 0;
UPDATE wallets SET adjusted = (SELECT CAST(SUM(own) AS BIGINT) FROM ledger_entries e
        WHERE e.agent_id = wallets.agent_id AND e.type = 'adjustment' AND e.own > 0)
    WHERE agent_id IN (SELECT agent_id FROM ledger_entries WHERE type = 'adjustment' AND own > 0);

-- +goose Down
ALTER TABLE wallets DROP COLUMN adjusted;
