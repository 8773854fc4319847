package accounts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// keyWallets keeps the money of restricted keys.
type keyWallets struct{ *work.Unit }

// KeyWallets returns the money of restricted keys in a unit.
func KeyWallets(u *work.Unit) ports.KeyWallets { return keyWallets{u} }

// keyWalletRow is a row of key_wallets.
type keyWalletRow struct {
	AgentID, KeyID                        string
	BudgetTotal, BudgetDaily, PerPurchase *int64
	Products                              string
	MaxSessions                           int64
	Own                                   bool
	Held, Spent, LiveSessions             int64
	SpentDay, SpentToday                  int64
}

// movedKeyWallet is what postings change in one.
type movedKeyWallet struct {
	AgentID, KeyID            string
	Held, Spent, LiveSessions int64
	SpentDay, SpentToday      int64
}

// KeyOf names a key of an agent. The one without an id is read when all of the agent are.
type KeyOf struct{ AgentID, KeyID string }

func compareKeys(a, b KeyOf) int {
	return cmp.Or(strings.Compare(a.AgentID, b.AgentID), strings.Compare(a.KeyID, b.KeyID))
}

var (
	// selectKeyWallets reads rows for scanKeyWallet; agents follow.
	selectKeyWallets = "SELECT " + strings.Join(column.Names(new(keyWalletRow)), ", ") +
		" FROM key_wallets WHERE agent_id = "
	moveKeyWallets = rows.Update[movedKeyWallet]("move the money of keys", "key_wallets", 2)
)

// KeyMoney has what postings move. Limits are changed by statements. Units that share a transaction read all of
// an agent.
var KeyMoney = &rows.Table[KeyOf, billing.KeyWallet]{
	Order:   work.KeyWalletOrder,
	Compare: compareKeys,
	Find: func(s *rows.Set, k KeyOf) (w billing.KeyWallet, found bool, err error) {
		var row keyWalletRow
		found, err = s.Find(column.Targets(&row), selectKeyWallets+"?1 AND key_id = ?2", "key_wallets", k.AgentID, k.KeyID)
		return fromKeyWalletRow(row), found, work.Wrap("read the money of "+k.KeyID, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[KeyOf, billing.KeyWallet]) error {
		return moveKeyWallets.Write(to, rows.Map(changed, toMovedKeyWallet))
	},
	Unread: func(read func(KeyOf) bool, k KeyOf) bool { return read(KeyOf{k.AgentID, ""}) },
	// The wallets of their agents are locked before.
	Ahead: rows.Ahead[KeyOf, billing.KeyWallet]{
		What: "read the money of keys", Query: selectKeyWallets + work.AgentsOf,
		Scan: func(row engine.Row) (KeyOf, billing.KeyWallet, error) {
			k, err := scanKeyWallet(row)
			return KeyOf{k.AgentID, k.KeyID}, k, err
		},
	},
}

func toMovedKeyWallet(c rows.Change[KeyOf, billing.KeyWallet]) movedKeyWallet {
	k := c.Row
	return movedKeyWallet{AgentID: k.AgentID, KeyID: k.KeyID, Held: int64(k.Held), Spent: int64(k.Spent),
		LiveSessions: int64(k.LiveSessions), SpentDay: column.Micros(k.SpentDay), SpentToday: int64(k.SpentToday)}
}

func fromKeyWalletRow(r keyWalletRow) billing.KeyWallet {
	l := account.Limits{MaxSessions: int(r.MaxSessions), Own: r.Own, Budget: account.KeyBudget{
		Total: (*domain.Money)(r.BudgetTotal), Daily: (*domain.Money)(r.BudgetDaily),
		PerPurchase: (*domain.Money)(r.PerPurchase)}}
	if r.Products != "" {
		l.Products = strings.Fields(r.Products)
	}
	return billing.KeyWallet{AgentID: r.AgentID, KeyID: r.KeyID, Limits: l, Held: domain.Money(r.Held),
		Spent: domain.Money(r.Spent), LiveSessions: int(r.LiveSessions), SpentDay: column.Time(r.SpentDay),
		SpentToday: domain.Money(r.SpentToday)}
}

// scanKeyWallet reads a row.
func scanKeyWallet(row engine.Row) (billing.KeyWallet, error) {
	var k keyWalletRow
	err := row.Scan(column.Targets(&k)...)
	return fromKeyWalletRow(k), err
}

func (r keyWallets) Get(_ context.Context, agentID, keyID string) (billing.KeyWallet, bool, error) {
	return KeyMoney.Get(r.Set, KeyOf{agentID, keyID})
}

func (r keyWallets) List(ctx context.Context, agentID string) (list []billing.KeyWallet, err error) {
	err = r.Rows(ctx, selectKeyWallets+"?1 ORDER BY key_id", []any{agentID}, func(row engine.Row) error {
		k, err := scanKeyWallet(row)
		list = append(list, k)
		return err
	})
	return list, work.Wrap("list the money of keys of "+agentID, err)
}

// restrictKey sums what is spent of a key that had no limits. What was held and released on the day of ?9 is its
// spending of that day.
const restrictKey = `INSERT INTO key_wallets (agent_id, key_id, budget_total, budget_daily, per_purchase, products,
	max_sessions, own, held, spent, live_sessions, spent_day, spent_today)
	SELECT ?1, ?2, CAST(?3 AS BIGINT), CAST(?4 AS BIGINT), CAST(?5 AS BIGINT), ?6, CAST(?7 AS BIGINT),
	CAST(?8 AS SMALLINT), COALESCE(SUM(held_trial + held_own), 0), COALESCE(SUM(charged_trial + charged_own
	- refunded_trial - refunded_own), 0), COALESCE(SUM(CASE WHEN status IN ('creating', 'active') THEN 1 ELSE 0 END), 0),
	CAST(?9 AS BIGINT),
	(SELECT CASE WHEN COALESCE(SUM(trial + own), 0) < 0 THEN -SUM(trial + own) ELSE 0 END FROM ledger_entries e
	JOIN sessions b ON b.id = e.session_id WHERE e.agent_id = ?1 AND e.at >= ?9 AND b.bought_by = ?2
	AND (e.type = 'hold' OR e.type = 'release' AND b.created_at >= ?9))
	FROM sessions WHERE agent_id = ?1 AND bought_by = ?2
	ON CONFLICT (agent_id, key_id) DO UPDATE SET budget_total = excluded.budget_total,
	budget_daily = excluded.budget_daily, per_purchase = excluded.per_purchase, products = excluded.products,
	max_sessions = excluded.max_sessions, own = excluded.own`

func (r keyWallets) Restrict(_ context.Context, agentID, keyID string, l account.Limits, now time.Time) error {
	if err := r.lock(agentID); err != nil {
		return err
	}
	_, err := r.Exec(restrictKey, agentID, keyID, (*int64)(l.Budget.Total), (*int64)(l.Budget.Daily),
		(*int64)(l.Budget.PerPurchase), strings.Join(l.Products, " "), l.MaxSessions, column.Flag(l.Own),
		column.Micros(billing.Day(now)))
	if err != nil {
		return work.Wrap("restrict the key "+keyID, err)
	}
	return r.count(agentID)
}

func (r keyWallets) Free(_ context.Context, agentID, keyID string) error {
	if err := r.lock(agentID); err != nil {
		return err
	}
	n, err := r.Exec("DELETE FROM key_wallets WHERE agent_id = ?1 AND key_id = ?2", agentID, keyID)
	if err != nil || n == 0 {
		return work.Wrap("free the key "+keyID, err)
	}
	return r.count(agentID)
}

// lock locks the wallet, so that no session of the key moves money meanwhile.
func (r keyWallets) lock(agentID string) error {
	return r.LockFirst("lock the wallet", "SELECT 1 FROM wallets WHERE agent_id = ?1"+r.ForUpdate("wallets"), agentID)
}

// count keeps how many keys of an agent are restricted.
func (r keyWallets) count(agentID string) error {
	_, err := r.Exec(`UPDATE wallets SET restricted_keys = (SELECT COUNT(*) FROM key_wallets WHERE agent_id = ?1)
		WHERE agent_id = ?1`, agentID)
	if err != nil {
		return work.Wrap("count the restricted keys of "+agentID, err)
	}
	return r.NoteChange(agentID, "")
}

// MoveKey moves the money of the key that bought a session by a posting, with the wallet of its agent.
func MoveKey(s *rows.Set, w billing.Wallet, p ports.Posting) error {
	if w.RestrictedKeys == 0 || p.Key == "" {
		return nil
	}
	of := KeyOf{w.AgentID, p.Key}
	k, restricted, err := KeyMoney.Get(s, of)
	if err != nil || !restricted {
		return err
	}
	return KeyMoney.Put(s, of, k.Apply(p))
}

// RestrictedAgents are those of which wallets had restricted keys when they were read last: batches read the money of
// these keys ahead. A unit of any other agent with restricted keys runs again alone, and its agent is known then, so
// that agents without them cost no statement.
type RestrictedAgents struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

// maxRestrictedAgents bounds what is known; beyond it all is forgotten.
const maxRestrictedAgents = 10_000

// Note notes whether an agent has restricted keys.
func (a *RestrictedAgents) Note(id string, restricted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !restricted:
		delete(a.ids, id)
		return
	case a.ids == nil || len(a.ids) >= maxRestrictedAgents:
		a.ids = map[string]struct{}{}
	}
	a.ids[id] = struct{}{}
}

// Among reports whether one of some agents may have a restricted key, or any agent if others may be theirs.
func (a *RestrictedAgents) Among(agents []string, others bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := func(id string) bool { _, ok := a.ids[id]; return ok }
	return len(a.ids) > 0 && (others || slices.ContainsFunc(agents, known))
}
