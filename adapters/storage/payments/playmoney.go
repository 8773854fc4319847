package payments

import (
	"context"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/recharge"
)

// playMoney looks at agents that have an address on another network alone, of whom one that counts has few or none. Own
// money is what was paid on the network or adjusted, less what left; the rest of a wallet is not.
const playMoney = `SELECT w.agent_id, w.own, w.own + w.held_own - (SELECT CAST(COALESCE(SUM(e.own), 0) AS BIGINT)
		FROM ledger_entries e WHERE e.agent_id = w.agent_id AND e.own > 0 AND (e.type = 'adjustment'
		OR e.type = 'recharge' AND substr(e.ref, 1, length(?2)) = ?2)) AS play
	FROM wallets w WHERE (?3 = '' OR w.agent_id = ?3) AND w.agent_id IN (
		SELECT agent_id FROM recharge_addresses WHERE network < ?1
		UNION SELECT agent_id FROM recharge_addresses WHERE network > ?1)`

func (r transfers) PlayMoney(ctx context.Context, network, agentID string) (list []recharge.Play, err error) {
	err = r.Rows(ctx, "SELECT agent_id, own, play FROM ("+playMoney+") AS found WHERE play > 0 ORDER BY agent_id",
		[]any{network, recharge.RefPrefix(network), agentID}, func(row engine.Row) error {
			var p recharge.Play
			err := row.Scan(&p.AgentID, &p.Own, &p.Left)
			list = append(list, p)
			return err
		})
	return list, work.Wrap("list money of other networks", err)
}
