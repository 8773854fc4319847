package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// SessionFilter narrows a list of sessions; empty fields do not.
type SessionFilter struct {
	Status    session.Status
	Type      session.Type
	ProductNo string
	Country   string
	Key       string // id of the key that bought them
	// LabelKey and LabelValue are one label that a session has. Without a key there is none.
	LabelKey, LabelValue string
	// Part is a part of the id or of an exit. No index has it: it is for lists of live sessions.
	Part string
	// From and To bound the creation, To exclusive.
	From, To time.Time
}

// SessionCount is how many sessions an agent has.
type SessionCount struct {
	Creating, Active int
	Total            int // with those that ended
}

// KeyCount counts the sessions that a key bought, and what they did.
type KeyCount struct {
	SessionCount
	Bytes, Rotations int64
}

// KeySessions counts the sessions of a list that a key bought.
type KeySessions struct {
	Key         string
	Total, Live int
}

// Sessions keeps sessions. Every query carries the owner.
type Sessions interface {
	Insert(ctx context.Context, s session.Session) error
	// Get returns a session of the agent, or session.ErrNotFound.
	Get(ctx context.Context, agentID, id string) (session.Session, error)
	// Load is like Get for the service itself, for a session of any agent.
	Load(ctx context.Context, id string) (session.Session, error)
	// Lock locks sessions in the order of their ids until the end of the unit. A unit that
	// changes several locks all of them first, and their agent before them and its wallet
	// after them: units that all lock in this order do not deadlock.
	Lock(ctx context.Context, ids []string) error
	// Put writes everything but id, owner, product and creation, and notes a
	// change of the session. Usage is written by Traffic alone.
	Put(ctx context.Context, s session.Session) error
	// Read is like Get with the usage and the health state: everything
	// that a session shows, in one query.
	Read(ctx context.Context, agentID, id string) (SessionRead, error)
	// List returns sessions, newest first.
	List(ctx context.Context, agentID string, f SessionFilter, page domain.Page) (domain.List[SessionRead], error)
	// ListByKey counts the same list by the key that bought a session, in the order of their ids. The key without an id
	// is that of sessions whose key is not known.
	ListByKey(ctx context.Context, agentID string, f SessionFilter) ([]KeySessions, error)
	// Newest returns the agent's newest creating or active session of a product, of those that a key bought if
	// keyID is not empty, else session.ErrNotFound.
	Newest(ctx context.Context, agentID, keyID, productNo string) (session.Session, error)
	// Live lists the ids of the agent's creating and active sessions, of those that some keys bought if any are given.
	Live(ctx context.Context, agentID string, keyIDs ...string) ([]string, error)
	// Unbooked sums what the agent's sessions used up of what they hold since their last charge, by the
	// hour in which each was used last, in no order.
	Unbooked(ctx context.Context, agentID string) ([]Hour, error)
	// KeyUnbooked is like Unbooked of the sessions that a key bought.
	KeyUnbooked(ctx context.Context, agentID, keyID string) ([]Hour, error)
	// KeyCount counts the sessions that a key bought.
	KeyCount(ctx context.Context, agentID, keyID string) (KeyCount, error)
	// SpentByKey sums what the sessions of each key of an agent hold and have cost, and counts the live ones, for keys
	// with and without a restriction. The key without an id is that of sessions whose key is not known.
	SpentByKey(ctx context.Context, agentID string) (map[string]KeySpent, error)
	// Count counts the agent's sessions. It walks those that live, however many ended.
	Count(ctx context.Context, agentID string) (SessionCount, error)
	// Expiring lists active static sessions of agents with a webhook whose time
	// is up after from and until to, the first to end first.
	Expiring(ctx context.Context, from, to time.Time, limit int) ([]session.Session, error)
	// TimeDue lists active static sessions whose time is up at now.
	TimeDue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// SettleDue lists sessions that wait for a settlement at now.
	SettleDue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// CreatingSince lists sessions that are creating since before the time.
	CreatingSince(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// SessionRead is a session and what is kept beside it.
type SessionRead struct {
	session.Session
	Usage  traffic.Usage
	Health *health.State // shared and not to be changed; never nil
}

// Cost returns what the session was charged and what it holds if all that it used up were booked, and what of that is
// not: charges are booked by the hour. Agents and the operator see the same.
func (r SessionRead) Cost() (charged, held billing.Funds, unbooked domain.Money) {
	unbooked = r.ChargeDue(r.Usage.Used())
	taken := billing.Charge(r.Money.Held, unbooked).Held
	return r.Money.Charged.Add(taken.Neg()), r.Money.Held.Add(taken), unbooked
}
