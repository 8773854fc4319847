package storage

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
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
func (b *batch) queueNotices(n named) {
	b.pipe.Queue("read webhooks", endpointsAhead, []any{slices.Clone(n.agents), slices.Clone(n.owned)},
		func(row engine.Row) error {
			e, err := webhooks.ScanEndpoint(row)
			webhooks.Endpoints.Load(b.rows, e.AgentID, e)
			if e.URL == "" {
				webhooks.Pending.Load(b.rows, e.AgentID, 0)
			}
			if _, locked := walletTable.Peek(b.rows, e.AgentID); locked {
				webhooks.Marks.Load(b.rows, webhooks.MarkKey{AgentID: e.AgentID}, 0)
			}
			return err
		})
	b.pipe.Queue("count deliveries", pendingAhead, []any{slices.Clone(n.agents), slices.Clone(n.owned)},
		func(row engine.Row) error {
			var agentID string
			var pending int
			err := row.Scan(&agentID, &pending)
			webhooks.Pending.Load(b.rows, agentID, pending)
			return err
		})
	b.pipe.Queue("read marks", marksAhead, []any{n.agents, slices.Clone(n.owned)}, func(row engine.Row) error {
		var k webhooks.MarkKey
		var mark int64
		err := row.Scan(&k.AgentID, &k.What, &mark)
		if _, locked := walletTable.Peek(b.rows, k.AgentID); locked {
			webhooks.Marks.Load(b.rows, k, mark)
		}
		return err
	})
}

// insertJob keeps a job with the time from which on it runs: units of a batch have clocks of their own.
func (b *batch) insertJob(j ports.Job, now time.Time) {
	b.wrote = true
	j.At, j.After = cmp.Or(j.At, now.Add(j.After)), 0
	b.writes.own.jobs = append(b.writes.own.jobs, j)
}

// agentsOf are agents by their ids, and those of sessions.
const agentsOf = "ANY(?1::text[] || ARRAY(SELECT o.agent_id FROM sessions o WHERE o.id = ANY(?2::text[])))"
