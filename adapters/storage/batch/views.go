package batch

import (
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/workers"
	"agentproxy/ports"
)

// ReadViews reads what views name from one snapshot.
func (b *Batch) ReadViews(list []*ports.ReadSet) error {
	n := nameAll(list)
	if len(n.payers)+len(n.owned) > 0 {
		b.queueMoney(n, false)
	}
	if len(n.holding) > 0 {
		b.queueHolding(n.holding)
	}
	if len(n.health) > 0 {
		b.queueReads(n.health)
	}
	for _, a := range list {
		if a.List != nil {
			b.queueList(sessions.ListKey{AgentID: a.Agent, SessionPage: *a.List})
		}
	}
	b.Pipe.Queue("commit", "COMMIT", nil, nil)
	return b.Pipe.Send()
}

func (b *Batch) queueReads(ids []string) {
	sessions.Table.Ask(b.Rows, ids...)
	workers.HealthTable.Ask(b.Rows, ids...)
	b.Pipe.Queue("read sessions", readsAhead, []any{ids}, b.loadRead)
	b.Pipe.Queue("read workers", workers.SelectHealth+"= ANY(?1::text[]) ORDER BY w.seq", []any{ids},
		workers.LoadHealth(b.Rows))
}

func (b *Batch) queueHolding(agents []string) {
	sessions.HoldingTable.Ask(b.Rows, agents...)
	b.Pipe.Queue("read what is held", HoldingAhead, []any{agents}, func(row engine.Row) error {
		var owner string
		var d sessions.DueRow
		err := row.Scan(append([]any{&owner}, d.Targets()...)...)
		list, _ := sessions.HoldingTable.Peek(b.Rows, owner)
		sessions.HoldingTable.Load(b.Rows, owner, append(list, d))
		return err
	})
}

// queueList reads a page as sessions.List does, without waiting for the count of what the filter leaves. The
// numbers of the page are an array, of which the planner expects ten elements: in a plan for any arguments it
// expects a subquery with LIMIT to return a tenth of the agent's sessions, and would read all of them.
func (b *Batch) queueList(k sessions.ListKey) {
	p := &sessions.SessionPage{}
	p.Page = k.Page
	sessions.ListTable.Load(b.Rows, k, p)
	count, places, args, more := k.Queries()
	b.Pipe.Queue("count sessions", count, args, func(row engine.Row) error { return row.Scan(&p.Total) })
	all := append(args[:len(args):len(args)], more...)
	b.Pipe.Queue("list sessions", "SELECT s.ord, "+sessions.ReadColumns+"WHERE s.agent_id = ?1 AND s.ord = ANY(ARRAY("+
		places+")) ORDER BY s.ord DESC", all, func(row engine.Row) error {
		var ord int64
		read, err := sessions.ScanRead(Behind{row, []any{&ord}})
		p.Items, p.Ords = append(p.Items, read), append(p.Ords, ord)
		workers.HealthTable.Ask(b.Rows, read.ID)
		return err
	})
	b.Pipe.Queue("read workers", workers.SelectHealth+"IN (SELECT l.id FROM sessions l WHERE l.agent_id = ?1"+
		" AND l.ord = ANY(ARRAY("+places+"))) ORDER BY w.seq", all, workers.LoadHealth(b.Rows))
}

// Behind is a row whose first columns go elsewhere.
type Behind struct {
	engine.Row
	First []any
}

// Scan reads the columns Behind the first ones.
func (r Behind) Scan(into ...any) error { return r.Row.Scan(append(r.First, into...)...) }
