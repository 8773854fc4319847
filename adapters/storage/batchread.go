package storage

import (
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
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
	callsAhead     = "SELECT " + callColumns + ` FROM idempotency_keys
		JOIN unnest(?1::text[], ?2::text[], ?3::text[]) AS u(a, p, k) ON agent_id = u.a AND path = u.p AND key = u.k`
	lockAgentsAhead   = "SELECT 1 FROM agents WHERE id = " + agentsOf + " ORDER BY id FOR " + work.RowLock
	agentsAhead       = accounts.AgentSelect + "WHERE a.id = " + agentsOf
	lockSessionsAhead = "SELECT 1 FROM sessions WHERE id = ANY(?1::text[]) ORDER BY id FOR " + work.RowLock
	healthAhead       = `SELECT s.id, s.seq, s.agent_id, s.type, s.status, h.state, COALESCE(h.last_no, 0)
		FROM sessions s LEFT JOIN session_health h ON h.session = s.seq WHERE s.id = ANY(?1::text[])`
	sessionsAhead = "SELECT " + sessionSelect + ", " + usageColumns +
		", s.settle_at FROM sessions s WHERE s.id = ANY(?1::text[])"
	walletsAhead     = selectWallets + agentsOf
	keyWalletsAhead  = accounts.SelectKeyWallets + agentsOf
	lockWalletsAhead = walletsAhead + " ORDER BY agent_id FOR " + work.RowLock
	// answersAhead reads the sessions that known keys name, for the answers to calls that are repeated.
	answersAhead = sessionReadFrom + `WHERE s.id IN (SELECT split_part(k.resource, '#', 1) FROM idempotency_keys k
		JOIN unnest(?1::text[], ?2::text[], ?3::text[]) AS u(a, p, k) ON k.agent_id = u.a AND k.path = u.p AND k.key = u.k)`
	readsAhead = sessionReadFrom + "WHERE s.id = ANY(?1::text[])"
	// holdingAhead names one agent at a time: as long as the table is not analyzed, the plan of a condition
	// on several agents reads the sessions of all.
	holdingAhead = "SELECT u.agent_id, held.* FROM unnest(?1::text[]) AS u(agent_id) CROSS JOIN LATERAL (SELECT " +
		dueColumns + " FROM sessions s WHERE s.agent_id = u.agent_id AND " + holdsMoney + " OFFSET 0) AS held"
)

// named is what the units of a batch read, each once and in order.
type named struct {
	agents, payers, holding, sessions, health []string
	owned                                     []string // sessions whose agents are payers
	folds                                     []string
	calls                                     []callKey
}

func nameAll(list []*ports.ReadSet) named {
	agents, payers, holding := map[string]bool{}, map[string]bool{}, map[string]bool{}
	sessions, health, owned, calls := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[callKey]bool{}
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
			calls[callKey{a.Agent, a.Path, a.Key}] = true
		}
	}
	sorted := func(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
	n := named{agents: sorted(agents), payers: sorted(payers), holding: sorted(holding), sessions: sorted(sessions),
		health: sorted(health), owned: sorted(owned), folds: folds}
	n.calls = slices.SortedFunc(maps.Keys(calls), func(a, b callKey) int { return strings.Compare(a.lock(), b.lock()) })
	return n
}

// readAhead reads and locks what the units of a list name, in one round trip.
func (b *batch) readAhead(list []*ports.ReadSet) error {
	n := nameAll(list)
	b.queueFolds(n.folds)
	b.queueCalls(n.calls)
	paying := len(n.payers)+len(n.owned) > 0
	if paying {
		b.pipe.Queue("lock agents", lockAgentsAhead, []any{slices.Clone(n.payers), slices.Clone(n.owned)}, nil)
	}
	if len(n.health) > 0 {
		b.pipe.Queue("lock sessions", lockSessionsAhead, []any{slices.Clone(n.health)}, nil)
		b.queueSessions(n)
	}
	if paying {
		b.queueMoney(n, lockWalletsAhead)
		b.queueKeys(n)
	}
	b.queueNotices(n)
	return b.pipe.Send()
}

func (b *batch) queueFolds(queues []string) {
	if len(queues) == 0 {
		return
	}
	b.pipe.Queue("lock folds", lockFoldsAhead, []any{queues}, func(row engine.Row) error {
		var f foldRow
		err := row.Scan(column.Targets(&f)...)
		foldTable.Load(b.rows, f.Queue, ports.FoldCursor{Stream: f.Stream, Seq: uint64(f.Seq)})
		return err
	})
}

func (b *batch) queueCalls(calls []callKey) {
	if len(calls) == 0 {
		return
	}
	locks, agents, paths, texts := []string{}, []string{}, []string{}, []string{}
	for _, k := range calls {
		callTable.Ask(b.rows, k)
		locks, agents = append(locks, k.lock()), append(agents, k.agentID)
		paths, texts = append(paths, k.path), append(texts, k.key)
	}
	b.pipe.Queue("lock keys", lockCallsAhead, []any{locks}, nil)
	b.pipe.Queue("read answers", answersAhead, []any{agents, paths, texts}, b.loadRead)
	b.pipe.Queue("read keys", callsAhead, []any{agents, paths, texts}, func(row engine.Row) error {
		var c callRow
		err := row.Scan(column.Targets(&c)...)
		callTable.Load(b.rows, callKey{c.AgentID, c.Path, c.Key}, fromCallRow(c))
		return err
	})
}

func (b *batch) queueSessions(n named) {
	for _, id := range n.health {
		b.looked[id] = true
	}
	b.pipe.Queue("read health", healthAhead, []any{slices.Clone(n.health)}, func(row engine.Row) error {
		var id string
		var h batchHealth
		err := row.Scan(&id, &h.seq, &h.owner, &h.kind, &h.status, &h.state, &h.lastNo)
		h.stored = h.state != nil
		b.health.load(id, h)
		return err
	})
	if len(n.sessions) == 0 {
		return
	}
	for _, id := range n.sessions {
		b.whole[id] = true
	}
	b.pipe.Queue("read sessions", sessionsAhead, []any{slices.Clone(n.sessions)}, func(row engine.Row) error {
		var s batchSession
		err := row.Scan(column.Targets(&s.row, column.Targets(&s.usage, &s.settleAt)...)...)
		s.locked = true
		b.sessions.load(s.row.ID, s)
		return err
	})
}

// loadRead loads a row of sessionReadFrom, which is not locked.
func (b *batch) loadRead(row engine.Row) error {
	var s batchSession
	var h batchHealth
	err := row.Scan(column.Targets(&s.row, column.Targets(&s.usage, &h.state)...)...)
	b.loadSession(s, h)
	return err
}

// loadSession loads a session with the state of its health.
func (b *batch) loadSession(s batchSession, h batchHealth) {
	h.owner, h.kind, h.status = s.row.AgentID, s.row.Type, s.row.Status
	b.sessions.load(s.row.ID, s)
	b.health.load(s.row.ID, h)
}

func (b *batch) queueMoney(n named, query string) {
	of := []any{slices.Clone(n.payers), slices.Clone(n.owned)}
	b.pipe.Queue("read agents", agentsAhead, of, func(row engine.Row) error {
		a, err := accounts.ScanAgent(row)
		accounts.Accounts.Load(b.rows, a.ID, a)
		return err
	})
	b.pipe.Queue("read wallets", query, slices.Clone(of), func(row engine.Row) error {
		var stored walletRow
		var w walletOf
		err := row.Scan(column.Targets(&stored, &w.entries)...)
		if err == nil {
			w.Wallet, err = fromWalletRow(stored)
			walletTable.Load(b.rows, stored.AgentID, w)
			b.restricted.Note(stored.AgentID, stored.RestrictedKeys > 0)
			if b.readsKeys {
				accounts.KeyMoney.Ask(b.rows, accounts.KeyOf{AgentID: stored.AgentID})
			}
		}
		return err
	})
}

// queueKeys reads the money of restricted keys of agents, whose wallets are locked by a statement before.
func (b *batch) queueKeys(n named) {
	if b.readsKeys = b.restricted.Among(n.payers, len(n.owned) > 0); !b.readsKeys {
		return
	}
	of := []any{slices.Clone(n.payers), slices.Clone(n.owned)}
	b.pipe.Queue("read the money of keys", keyWalletsAhead, of, func(row engine.Row) error {
		k, err := accounts.ScanKeyWallet(row)
		accounts.KeyMoney.Load(b.rows, accounts.KeyOf{AgentID: k.AgentID, KeyID: k.KeyID}, k)
		return err
	})
}
