package batch

import (
	"slices"
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/domain/webhook"
)

var (
	endpointsAhead = webhooks.SelectEndpoints + "WHERE a.id = " + agentsOf
	// pendingAhead is of agents with a webhook.
	pendingAhead = "SELECT a.id, (" + webhooks.CountPending + "a.id AND status = 'pending' LIMIT " +
		strconv.Itoa(webhook.MaxPending) + ") d) FROM agents a WHERE a.webhook_url <> '' AND a.id = " + agentsOf
	marksAhead = "SELECT m.agent_id, m.what, m.mark FROM agents a JOIN webhook_marks m ON m.agent_id = a.id " +
		"WHERE a.id = " + agentsOf
)

// queueNotices reads what events for webhooks need. The marks of agents are read with their wallets, whose lock
// those that mark have.
func (b *Batch) queueNotices(n named) {
	b.Pipe.Queue("read webhooks", endpointsAhead, []any{slices.Clone(n.agents), slices.Clone(n.owned)},
		func(row engine.Row) error {
			e, err := webhooks.ScanEndpoint(row)
			webhooks.Endpoints.Load(b.Rows, e.AgentID, e)
			if e.URL == "" {
				webhooks.Pending.Load(b.Rows, e.AgentID, 0)
			}
			if _, locked := ledger.Wallets.Peek(b.Rows, e.AgentID); locked {
				webhooks.Marks.Load(b.Rows, webhooks.MarkKey{AgentID: e.AgentID}, 0)
			}
			return err
		})
	b.Pipe.Queue("count deliveries", pendingAhead, []any{slices.Clone(n.agents), slices.Clone(n.owned)},
		func(row engine.Row) error {
			var agentID string
			var pending int
			err := row.Scan(&agentID, &pending)
			webhooks.Pending.Load(b.Rows, agentID, pending)
			return err
		})
	b.Pipe.Queue("read marks", marksAhead, []any{n.agents, slices.Clone(n.owned)}, func(row engine.Row) error {
		var k webhooks.MarkKey
		var mark int64
		err := row.Scan(&k.AgentID, &k.What, &mark)
		if _, locked := ledger.Wallets.Peek(b.Rows, k.AgentID); locked {
			webhooks.Marks.Load(b.Rows, k, mark)
		}
		return err
	})
}

// agentsOf are agents by their ids, and those of sessions.
const agentsOf = "ANY(?1::text[] || ARRAY(SELECT o.agent_id FROM sessions o WHERE o.id = ANY(?2::text[])))"
