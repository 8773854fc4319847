package batch

import (
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/calls"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// The statements that read ahead. Each locks its rows in the order of their keys, and the statements
// lock in one order too, so batches do not block each other for good. Sessions and agents are locked
// by a statement before the one that reads them with what is beside them: only that one reads what
// was committed during the wait.
var (
	lockFoldsAhead = `SELECT queue, stream, seq FROM telemetry_folds WHERE queue = ANY(?1::text[]) ORDER BY queue
		FOR ` + work.RowLock
	lockCallsAhead = `SELECT pg_advisory_xact_lock(hashtextextended(k, 0)) FROM unnest(?1::text[]) AS k`
	callsAhead     = "SELECT " + calls.Columns + ` FROM idempotency_keys
		JOIN unnest(?1::text[], ?2::text[], ?3::text[]) AS u(a, p, k) ON agent_id = u.a AND path = u.p AND key = u.k`
	lockAgentsAhead   = "SELECT 1 FROM agents WHERE id = " + agentsOf + " ORDER BY id FOR " + work.RowLock
	agentsAhead       = accounts.AgentSelect + "WHERE a.id = " + agentsOf
	lockSessionsAhead = "SELECT 1 FROM sessions WHERE id = ANY(?1::text[]) ORDER BY id FOR " + work.RowLock
	healthAhead       = sessions.SelectHealth + "= ANY(?1::text[])"
	sessionsAhead     = sessions.SelectStored + "= ANY(?1::text[])"
	walletsAhead      = ledger.SelectWallets + "= " + agentsOf
	keyWalletsAhead   = accounts.SelectKeyWallets + agentsOf
	lockWalletsAhead  = walletsAhead + " ORDER BY agent_id FOR " + work.RowLock
	// answersAhead reads the sessions that known keys name, for the answers to calls that are repeated.
	answersAhead = sessions.ReadFrom + `WHERE s.id IN (SELECT ` + calls.SessionOf + ` FROM idempotency_keys k
		JOIN unnest(?1::text[], ?2::text[], ?3::text[]) AS u(a, p, k) ON k.agent_id = u.a AND k.Path = u.p AND k.key = u.k)`
	readsAhead = sessions.ReadFrom + "WHERE s.id = ANY(?1::text[])"
	// HoldingAhead names one agent at a time: as long as the table is not analyzed, the plan of a condition
	// on several agents reads the sessions of all.
	HoldingAhead = "SELECT u.agent_id, held.* FROM unnest(?1::text[]) AS u(agent_id) CROSS JOIN LATERAL (SELECT " +
		sessions.DueColumns + " FROM sessions s WHERE s.agent_id = u.agent_id AND " + sessions.HoldsMoney +
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

// ReadAhead reads and locks what the units of a list name, in one round trip.
func (b *Batch) ReadAhead(list []*ports.ReadSet) error {
	n := nameAll(list)
	b.queueFolds(n.folds)
	b.queueCalls(n.calls)
	paying := len(n.payers)+len(n.owned) > 0
	if paying {
		b.Pipe.Queue("lock agents", lockAgentsAhead, []any{slices.Clone(n.payers), slices.Clone(n.owned)}, nil)
	}
	if len(n.health) > 0 {
		b.Pipe.Queue("lock sessions", lockSessionsAhead, []any{slices.Clone(n.health)}, nil)
		b.queueSessions(n)
	}
	if paying {
		b.queueMoney(n, lockWalletsAhead)
		b.queueKeys(n)
	}
	b.queueNotices(n)
	return b.Pipe.Send()
}

func (b *Batch) queueFolds(queues []string) {
	if len(queues) == 0 {
		return
	}
	b.Pipe.Queue("lock folds", lockFoldsAhead, []any{queues}, func(row engine.Row) error {
		var f calls.FoldRow
		err := row.Scan(column.Targets(&f)...)
		calls.FoldTable.Load(b.Rows, f.Queue, ports.FoldCursor{Stream: f.Stream, Seq: uint64(f.Seq)})
		return err
	})
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
	b.Pipe.Queue("lock keys", lockCallsAhead, []any{locks}, nil)
	b.Pipe.Queue("read answers", answersAhead, []any{agents, paths, texts}, b.loadRead)
	b.Pipe.Queue("read keys", callsAhead, []any{agents, paths, texts}, func(row engine.Row) error {
		return calls.Load(b.Rows, row)
	})
}

func (b *Batch) queueSessions(n named) {
	sessions.HealthTable.Ask(b.Rows, n.health...)
	b.Pipe.Queue("read health", healthAhead, []any{slices.Clone(n.health)}, sessions.LoadHealth(b.Rows))
	if len(n.sessions) == 0 {
		return
	}
	sessions.Table.Ask(b.Rows, n.sessions...)
	b.Pipe.Queue("read sessions", sessionsAhead, []any{slices.Clone(n.sessions)}, func(row engine.Row) error {
		f, err := sessions.ScanStored(row)
		if err == nil {
			sessions.Table.Load(b.Rows, f.ID, f)
		}
		return err
	})
}

func (b *Batch) loadRead(row engine.Row) error { return sessions.LoadWhole(b.Rows, row) }

func (b *Batch) queueMoney(n named, query string) {
	of := []any{slices.Clone(n.payers), slices.Clone(n.owned)}
	b.Pipe.Queue("read agents", agentsAhead, of, func(row engine.Row) error {
		a, err := accounts.ScanAgent(row)
		accounts.Accounts.Load(b.Rows, a.ID, a)
		return err
	})
	b.Pipe.Queue("read wallets", query, slices.Clone(of), func(row engine.Row) error {
		w, err := ledger.ScanWallet(row)
		if err == nil {
			ledger.Wallets.Load(b.Rows, w.AgentID, w)
			b.restricted.Note(w.AgentID, w.RestrictedKeys > 0)
			if b.readsKeys {
				accounts.KeyMoney.Ask(b.Rows, accounts.KeyOf{AgentID: w.AgentID})
			}
		}
		return err
	})
}

// queueKeys reads the money of restricted keys of agents, whose wallets are locked by a statement before.
func (b *Batch) queueKeys(n named) {
	if b.readsKeys = b.restricted.Among(n.payers, len(n.owned) > 0); !b.readsKeys {
		return
	}
	of := []any{slices.Clone(n.payers), slices.Clone(n.owned)}
	b.Pipe.Queue("read the money of keys", keyWalletsAhead, of, func(row engine.Row) error {
		k, err := accounts.ScanKeyWallet(row)
		accounts.KeyMoney.Load(b.Rows, accounts.KeyOf{AgentID: k.AgentID, KeyID: k.KeyID}, k)
		return err
	})
}
