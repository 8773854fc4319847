package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

var (
	outboxMany       = work.NewBulk(new(outboxEvent))
	insertOutbox     = outboxMany.Statement(outboxMany.Insert("outbox"))
	deliveryMany     = work.NewBulk(new(batchDelivery))
	insertDeliveries = deliveryMany.Statement(deliveryMany.Insert("webhook_deliveries"))
	markMany         = work.NewBulk(new(batchMark))
	putMarks         = markMany.Statement(markMany.Insert("webhook_marks") +
		" ON CONFLICT (agent_id, what) DO UPDATE SET mark = excluded.mark")

	// endpointsAhead also reads how many deliveries of a webhook are pending, and what was notified
	// of once.
	endpointsAhead = `SELECT CASE WHEN a.webhook_url = '' THEN 0 ELSE (SELECT COUNT(*) FROM (SELECT 1
			FROM webhook_deliveries d WHERE d.agent_id = a.id AND d.status = 'pending'
			LIMIT ` + strconv.Itoa(webhook.MaxPending) + `) p) END,
		CASE WHEN a.webhook_url = '' THEN '' ELSE COALESCE((SELECT string_agg(m.mark || ' ' || m.what, E'\n')
			FROM webhook_marks m WHERE m.agent_id = a.id), '') END,
		a.id, ` + webhooks.EndpointColumns + webhooks.EndpointFrom + "WHERE a.id = " + agentsOf
)

// loadEndpoint loads a row of endpointsAhead.
func (b *batch) loadEndpoint(row engine.Row) error {
	var pending int
	var marks string
	e, err := webhooks.ScanEndpoint(behind{row, []any{&pending, &marks}})
	if err != nil {
		return err
	}
	b.endpoints[e.AgentID] = e
	b.pending.load(e.AgentID, pending)
	for line := range strings.Lines(marks) {
		number, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		mark, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return fmt.Errorf("mark %q of %s: %w", what, e.AgentID, err)
		}
		b.marks.load(markKey{e.AgentID, what}, mark)
	}
	return nil
}

// AppendOutbox implements work.Batch.
func (b *batch) AppendOutbox(e webhook.Event, data string) {
	b.wrote = true
	b.writes.own.outbox = append(b.writes.own.outbox,
		outboxEvent{e.ID, e.AgentID, string(e.Type), column.Micros(e.At), data})
}

// PendingDeliveries implements work.Batch. It has no use for a limit above that of the query.
func (b *batch) PendingDeliveries(agentID string, limit int) (int, error) {
	n, ok := b.pending.get(agentID)
	if !ok || limit > webhook.MaxPending {
		return 0, b.escape()
	}
	return min(n, limit), nil
}

// InsertDelivery implements work.Batch. The unique index refuses a delivery whose event is not
// new, and with it the batch.
func (b *batch) InsertDelivery(d webhook.Delivery) error {
	n, ok := b.pending.get(d.AgentID)
	if !ok {
		return b.escape()
	}
	b.wrote = true
	if d.Status == webhook.Pending {
		b.pending.put(d.AgentID, n+1)
	}
	b.writes.own.deliveries = append(b.writes.own.deliveries, batchDelivery{ID: d.ID, AgentID: d.AgentID,
		EventID: d.EventID, Type: string(d.Type), Status: string(d.Status), Attempts: int64(d.Attempts),
		Tries: int64(d.Tries), LastStatusCode: int64(d.LastStatusCode), LastError: d.LastError,
		NextAttemptAt: column.Micros(d.NextAttemptAt), CreatedAt: column.Micros(d.CreatedAt)})
	return nil
}

// MarkNotified needs the wallet of the agent, whose lock those that mark have: a batch without it
// has read marks that another transaction may change.
func (b *batch) MarkNotified(agentID, what string, to int64) (changed bool, err error) {
	_, known := b.endpoints[agentID]
	if _, locked := b.wallets.get(agentID); !locked || !known {
		return false, b.escape()
	}
	k := markKey{agentID, what}
	if old, known := b.marks.get(k); known && old == to {
		return false, nil
	}
	b.wrote = true
	b.marks.put(k, to)
	if b.writes.own.marks == nil {
		b.writes.own.marks = map[markKey]int64{}
	}
	b.writes.own.marks[k] = to
	return true, nil
}

// insertJob keeps a job with the time from which on it runs: units of a batch have clocks of their own.
func (b *batch) insertJob(j ports.Job, now time.Time) {
	b.wrote = true
	j.At, j.After = cmp.Or(j.At, now.Add(j.After)), 0
	b.writes.own.jobs = append(b.writes.own.jobs, j)
}

// queueNotices queues the statements that store the events of webhooks.
func (b *batch) queueNotices(w *batchWrites) {
	queueRows(b, "append webhook events", insertOutbox, w.outbox)
	queueRows(b, "insert deliveries", insertDeliveries, w.deliveries)
	var marks []batchMark
	for k, to := range w.marks {
		marks = append(marks, batchMark{k.agentID, k.what, to})
	}
	slices.SortFunc(marks, func(x, y batchMark) int {
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.What, y.What))
	})
	queueRows(b, "mark what was notified", putMarks, marks)
}

// agentsOf are agents by their ids, and those of sessions.
const agentsOf = "ANY(?1::text[] || ARRAY(SELECT o.agent_id FROM sessions o WHERE o.id = ANY(?2::text[])))"
