package batch

import (
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/calls"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

var (
	// answersAhead reads the sessions that known keys name, for the answers to calls that are repeated.
	answersAhead = sessions.ReadFrom + "WHERE s.id IN (SELECT " + calls.SessionOf + " FROM idempotency_keys k JOIN " +
		calls.Named + " ON k.agent_id = u.a AND k.path = u.p AND k.key = u.k)"
	readsAhead = sessions.ReadFrom + "WHERE s.id = ANY(?1::text[])"
	// HoldingAhead names one agent at a time: as long as the table is not analyzed, the plan of a condition
	// on several agents reads the sessions of all.
	HoldingAhead = "SELECT u.agent_id, held.* FROM unnest(?1::text[]) AS u(agent_id) CROSS JOIN LATERAL (SELECT " +
		sessions.DueColumns + " FROM sessions s WHERE s.agent_id = u.agent_id AND " + sessions.Unbooked +
		" OFFSET 0) AS held"
)

// named is what the units of a batch read, each once and in order.
type named struct {
	agents, payers, holding, sessions, health []string
	owned                                     []string // sessions whose agents are payers
	folds                                     []string
	calls                                     []calls.Key
}

func nameAll(list []*ports.ReadSet) named {
	agents, payers, holding := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sessions, health, owned, keys := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[calls.Key]bool{}
	var folds []string
	for _, a := range list {
		agents[a.Agent] = true
		if a.Fold != "" {
			folds = append(folds, a.Fold)
		}
		if a.Money {
			payers[a.Agent] = true
		}
		if a.Holding {
			holding[a.Agent] = true
		}
		for _, id := range a.Sessions {
			sessions[id], health[id] = true, true
			if a.Owners {
				owned[id] = true
			}
		}
		for _, id := range a.Health {
			health[id] = true
		}
		if a.Key != "" {
			keys[calls.Key{AgentID: a.Agent, Path: a.Path, Key: a.Key}] = true
		}
	}
	sorted := func(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
	n := named{agents: sorted(agents), payers: sorted(payers), holding: sorted(holding), sessions: sorted(sessions),
		health: sorted(health), owned: sorted(owned), folds: folds}
	n.calls = slices.SortedFunc(maps.Keys(keys), func(a, b calls.Key) int { return strings.Compare(a.Lock(), b.Lock()) })
	return n
}

// ReadAhead reads and locks what the units of a list name, in one round trip. Each statement locks its rows in the
// order of their keys, and the statements lock in one order too, so batches do not block each other for good.
func (b *Batch) ReadAhead(list []*ports.ReadSet) error {
	n := nameAll(list)
	if len(n.folds) > 0 {
		calls.FoldTable.ReadAhead(b.Rows, b.Pipe, true, nil, n.folds)
	}
	b.queueCalls(n.calls)
	paying := len(n.payers)+len(n.owned) > 0
	if paying {
		accounts.Accounts.LockAhead(b.Pipe, n.payers, n.owned)
	}
	if len(n.health) > 0 {
		sessions.HealthTable.Ask(b.Rows, n.health...)
		sessions.HealthTable.LockAhead(b.Pipe, n.health)
		sessions.HealthTable.ReadAhead(b.Rows, b.Pipe, true, nil, n.health)
	}
	if len(n.sessions) > 0 {
		sessions.Table.Ask(b.Rows, n.sessions...)
		sessions.Table.ReadAhead(b.Rows, b.Pipe, true, nil, n.sessions)
	}
	if paying {
		b.queueMoney(n, true)
	}
	b.queueNotices(n, paying)
	return b.Pipe.Send()
}

func (b *Batch) queueCalls(keys []calls.Key) {
	if len(keys) == 0 {
		return
	}
	locks, agents, paths, texts := []string{}, []string{}, []string{}, []string{}
	for _, k := range keys {
		calls.Table.Ask(b.Rows, k)
		locks, agents = append(locks, k.Lock()), append(agents, k.AgentID)
		paths, texts = append(paths, k.Path), append(texts, k.Key)
	}
	calls.Table.LockAhead(b.Pipe, locks)
	b.Pipe.Queue("read answers", answersAhead, []any{agents, paths, texts}, b.loadRead)
	calls.Table.ReadAhead(b.Rows, b.Pipe, true, nil, agents, paths, texts)
}

func (b *Batch) loadRead(row engine.Row) error { return sessions.LoadWhole(b.Rows, row) }

// queueMoney reads the agents that pay, their wallets and, in units, the money of their restricted keys.
func (b *Batch) queueMoney(n named, units bool) {
	readsKeys := units && b.restricted.Among(n.payers, len(n.owned) > 0)
	accounts.Accounts.ReadAhead(b.Rows, b.Pipe, units, nil, n.payers, n.owned)
	ledger.Wallets.ReadAhead(b.Rows, b.Pipe, units, func(agentID string, w ledger.Stored) {
		b.restricted.Note(agentID, w.RestrictedKeys > 0)
		webhooks.Marks.Load(b.Rows, webhooks.MarkKey{AgentID: agentID}, 0) // they are read
		if readsKeys {
			accounts.KeyMoney.Ask(b.Rows, accounts.KeyOf{AgentID: agentID})
		}
	}, n.payers, n.owned)
	if readsKeys {
		accounts.KeyMoney.ReadAhead(b.Rows, b.Pipe, units, nil, n.payers, n.owned)
	}
}

// queueNotices reads what events for webhooks need. The marks of agents are read with their wallets, whose lock
// those that mark have.
func (b *Batch) queueNotices(n named, paying bool) {
	webhooks.Endpoints.ReadAhead(b.Rows, b.Pipe, true, func(agentID string, e webhook.Endpoint) {
		if e.URL == "" {
			webhooks.Pending.Load(b.Rows, agentID, 0)
		}
	}, n.agents, n.owned)
	webhooks.Pending.ReadAhead(b.Rows, b.Pipe, true, nil, n.agents, n.owned)
	if paying {
		webhooks.Marks.ReadAhead(b.Rows, b.Pipe, true, nil, n.payers, n.owned)
	}
}
