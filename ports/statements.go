package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// LedgerFilter narrows a list of entries.
type LedgerFilter struct {
	Type     billing.Type // empty: all
	Key      string       // only entries of sessions that this key bought; empty: all
	From, To time.Time    // zero: no bound; To is exclusive
}

// Statements reads the entries of wallets, and sums of them.
type Statements interface {
	// Entries lists an agent's entries, newest first.
	Entries(ctx context.Context, agentID string, f LedgerFilter, page domain.Page) (domain.List[billing.Entry], error)
	// EntriesByKey sums the same list by the key that bought the session of an entry, in the order of their ids. The
	// key without an id is that of entries without a session, and of sessions whose key is not known.
	EntriesByKey(ctx context.Context, agentID string, f LedgerFilter) ([]KeyEntries, error)
	// Hours sums money and traffic by hour, for the hours that have any, oldest
	// first. From is inclusive, to is exclusive; both are full hours.
	Hours(ctx context.Context, agentID string, from, to time.Time) ([]Hour, error)
	// KeyHours is like Hours of the sessions that a key bought.
	KeyHours(ctx context.Context, agentID, keyID string, from, to time.Time) ([]Hour, error)
	// SessionHours is like Hours of one session of the agent, for at most some hundred hours.
	SessionHours(ctx context.Context, agentID, sessionID string, from, to time.Time) ([]Hour, error)
	// SessionTotals sums the same by session, for those that have any, the most recently created first.
	// What a session used up since its last charge counts as charged, if its last use was in the time.
	SessionTotals(ctx context.Context, agentID string, from, to time.Time) ([]SessionTotal, error)
	// SessionTotalsPage returns a page of that, and the totals of all pages without what is not
	// charged yet.
	SessionTotalsPage(ctx context.Context, agentID string, from, to time.Time, page domain.Page) (
		domain.List[SessionTotal], Totals, error)
	// Statement returns the balance before a time, and what changed it from then until before another. Both are
	// starts of UTC months.
	Statement(ctx context.Context, agentID string, from, to time.Time) (StatementSums, error)
	// StatementItems sums the entries of one such month by session, the most recently created first.
	StatementItems(ctx context.Context, agentID string, from, to time.Time, page domain.Page) (domain.List[StatementItem],
		error)
	// KeyItems is like StatementItems of the sessions that a key bought.
	KeyItems(ctx context.Context, agentID, keyID string, from, to time.Time, page domain.Page) (
		domain.List[StatementItem], error)
	// StatementByKey sums the entries of sessions before the first of two such times, and from then until before the
	// second, by the key that bought them: of one key, or of all if keyID is empty.
	StatementByKey(ctx context.Context, agentID, keyID string, from, to time.Time) ([]KeySums, error)
}

// KeyEntries sums entries of one key.
type KeyEntries struct {
	Key     string
	Entries int
	Amount  domain.Money // the signed change of the spendable balance
	Charged domain.Money // what charges took of the held money
}

// KeySums is what the sessions that one key bought did to a balance; without an id of those whose key is not known.
type KeySums struct {
	Key     string
	Opening domain.Money // the signed change before the time
	Before  domain.Money // charged, less refunded, before the time
	// The rest is of the time.
	Held, Charged, Released, Refunded domain.Money
	Amount                            domain.Money // the signed change
}

// StatementSums is what moved a balance in some time.
type StatementSums struct {
	Opening domain.Money // the balance before
	Spent   domain.Money // charged, less refunded
	// OfBefore is what of Spent was used before the time, and Later what was used in it and is spent after it: the
	// charge of an hour is booked after the hour.
	OfBefore, Later domain.Money
	ByType          map[billing.Type]domain.Money
}

// StatementItem is what one session moved in some time.
type StatementItem struct {
	SessionID string
	Type      session.Type
	ProductNo string
	Held      domain.Money
	Charged   domain.Money
	Released  domain.Money
	Refunded  domain.Money
	Amount    domain.Money // the signed change of the spendable balance
}

// Totals are what one agent did in some time.
type Totals struct {
	Up, Down, Connections int64
	Charged               domain.Money
	Refunded              domain.Money
	Recharged             domain.Money
}

// Plus adds two totals.
func (t Totals) Plus(o Totals) Totals {
	return Totals{Up: t.Up + o.Up, Down: t.Down + o.Down, Connections: t.Connections + o.Connections,
		Charged: t.Charged + o.Charged, Refunded: t.Refunded + o.Refunded, Recharged: t.Recharged + o.Recharged}
}

// Hour is the totals of one hour.
type Hour struct {
	Start time.Time
	Totals
}

// SessionTotal holds the totals of one session.
type SessionTotal struct {
	SessionID string
	Place     int64 // in the list of the agent's sessions, for domain.Page.After
	Type      session.Type
	ProductNo string
	Key       string // id of the key that bought it; empty if it is not known
	Totals
}
