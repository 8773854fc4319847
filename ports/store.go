// Package ports says what the core needs from outside, one file per port. Each
// promise stands in the comment of its method and is held by a suite in
// test/contract.
package ports

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Store runs units of work: each call to View or Update is one.
type Store interface {
	// View runs fn on a consistent read-only snapshot.
	View(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Look is View for a single query, which is a snapshot by itself.
	Read(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Update commits if fn returns nil and rolls back otherwise. Rows that fn
	// reads stay locked until then, and so does an Idempotency-Key that it looks
	// for, found or not. It may run as a savepoint of a transaction that other
	// units share, and again if that transaction fails or cannot be serialized,
	// so fn changes only tx and variables it assigns anew, and nothing leaves
	// before Update returns. After domain.ErrUnavailable nobody may know whether
	// it was committed: the caller repeats it under the same reference.
	Update(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}

// Tx hands out the repositories of one unit of work.
type Tx interface {
	Agents() Agents
	Referrers() Referrers
	Ledger() Ledger
	Sessions() Sessions
	Traffic() Traffic
	Health() Health
	Events() Events
	Counters() Counters
	Idempotency() Idempotency
	Addresses() Addresses
	Changes() Changes
	Jobs() Jobs
	Recharges() Recharges
	Outbox() Outbox
	Webhooks() Webhooks
	Devchain() Devchain
	Orders() Orders
}

// Agents keeps accounts.
type Agents interface {
	Insert(ctx context.Context, a account.Agent) error
	// Get is account.ErrNotFound for an unknown id. The referrer is filled in.
	Get(ctx context.Context, id string) (account.Agent, error)
	// ByKey finds the agent whose key has this hash, else account.ErrNotFound.
	ByKey(ctx context.Context, keyHash []byte) (account.Agent, error)
	// Put writes everything but the id, the referrer and the creation, and
	// notes a change of the agent.
	Put(ctx context.Context, a account.Agent) error
	// List returns agents, newest first.
	List(ctx context.Context, page domain.Page) (domain.List[account.Agent], error)
}

// Referrers keeps referring agents.
type Referrers interface {
	// Insert refuses a code that exists with a *domain.Error of kind Conflict.
	Insert(ctx context.Context, r account.Referrer, now time.Time) error
	// ByCode is account.ErrReferralCode for an unknown code. The comparison is exact.
	ByCode(ctx context.Context, code string) (account.Referrer, error)
	// Default is the referring agent of those who named none. It always exists.
	Default(ctx context.Context) (account.Referrer, error)
	// Disable is account.ErrReferralCode for an unknown code.
	Disable(ctx context.Context, code string, now time.Time) error
	List(ctx context.Context) ([]account.Referrer, error)
}

// Posting is an entry and what else moves with it in the wallet.
type Posting = billing.Posting

// LedgerFilter narrows a list of entries.
type LedgerFilter struct {
	Type billing.Type // empty: all
}

// Ledger keeps wallets and the entries that moved them. An entry is never
// changed or removed, whoever tries.
type Ledger interface {
	// Open makes the empty wallet of a new agent.
	Open(ctx context.Context, w billing.Wallet) error
	// Wallet is account.ErrNotFound for an unknown agent.
	Wallet(ctx context.Context, agentID string) (billing.Wallet, error)
	// Post books an entry and moves the wallet by it, in one conditional update
	// with the affected rows checked: no part of the wallet goes below zero,
	// else billing.ErrInsufficientBalance, whatever was read before. It returns
	// the entry with its balance after. A Ref that exists is ErrDuplicate.
	Post(ctx context.Context, p Posting) (billing.Entry, error)
	// SetLive changes the count of live sessions without moving money.
	SetLive(ctx context.Context, agentID string, delta int) error
	PutBudget(ctx context.Context, agentID string, b billing.Budget) error
	// ExpireTrial marks the trial of a wallet as over.
	ExpireTrial(ctx context.Context, agentID string) error
	// TrialsDue lists agents whose trial ended at or before now and is not yet
	// marked as over.
	TrialsDue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// TrialsEnding lists wallets of agents with a webhook that are trials until a
	// time after from and until to, the first to end first.
	TrialsEnding(ctx context.Context, from, to time.Time, limit int) ([]billing.Wallet, error)
	// Entries lists an agent's entries, newest first.
	Entries(ctx context.Context, agentID string, f LedgerFilter, page domain.Page) (domain.List[billing.Entry], error)
	// Hours sums money and traffic by hour, for the hours that have any, oldest
	// first. From is inclusive, to is exclusive; both are full hours.
	Hours(ctx context.Context, agentID string, from, to time.Time) ([]Hour, error)
	// SessionTotals sums the same by session, the most recently created first.
	SessionTotals(ctx context.Context, agentID string, from, to time.Time) ([]SessionTotal, error)
}

// ErrDuplicate says that a row with the same unique reference exists.
var ErrDuplicate = &domain.Error{Kind: domain.Conflict, Code: "DUPLICATE", Message: "this was booked before"}

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

// SessionTotal is the totals of one session.
type SessionTotal struct {
	SessionID string
	Type      session.Type
	ProductNo string
	Totals
}

// SessionFilter narrows a list of sessions; empty fields do not.
type SessionFilter struct {
	Status    session.Status
	Type      session.Type
	ProductNo string
}

// Sessions keeps sessions. Every query carries the owner.
type Sessions interface {
	Insert(ctx context.Context, s session.Session) error
	// Get is session.ErrNotFound for an unknown id and for another agent's.
	Get(ctx context.Context, agentID, id string) (session.Session, error)
	// Load is Get for the service itself, whoever owns the session.
	Load(ctx context.Context, id string) (session.Session, error)
	// Put writes everything but id, owner, product and creation, and notes a
	// change of the session. Usage is written by Traffic alone.
	Put(ctx context.Context, s session.Session) error
	// Read is Get with the usage and the health state: what one look at a
	// session needs, in one query.
	Read(ctx context.Context, agentID, id string) (SessionRead, error)
	// List returns sessions, newest first.
	List(ctx context.Context, agentID string, f SessionFilter, page domain.Page) (domain.List[SessionRead], error)
	// Newest is the agent's newest creating or active session of a product,
	// else session.ErrNotFound.
	Newest(ctx context.Context, agentID, productNo string) (session.Session, error)
	// Live lists the ids of the agent's creating and active sessions.
	Live(ctx context.Context, agentID string) ([]string, error)
	// Holding lists the agent's sessions that hold money.
	Holding(ctx context.Context, agentID string) ([]SessionRead, error)
	// Count counts the agent's sessions by status.
	Count(ctx context.Context, agentID string) (map[session.Status]int, error)
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

// Traffic keeps the usage and the leases of sessions.
type Traffic interface {
	// Usage is session.ErrNotFound for an unknown session.
	Usage(ctx context.Context, sessionID string) (traffic.Usage, error)
	// Lease is false when there is no such lease.
	Lease(ctx context.Context, sessionID, lease string) (traffic.Lease, bool, error)
	// PutUsage moves the usage of a session by a delta. It refuses with
	// ErrOverspent, whatever was read before, when used and leased together
	// would exceed a limit.
	PutUsage(ctx context.Context, sessionID string, d traffic.Delta) error
	// Record adds to the hourly totals of a session.
	Record(ctx context.Context, agentID, sessionID string, hour time.Time, t Totals) error
	PutLease(ctx context.Context, l traffic.Lease) error
	DropLease(ctx context.Context, sessionID, lease string) error
	// Stale lists leases that were last renewed before the time.
	Stale(ctx context.Context, before time.Time, limit int) ([]traffic.Lease, error)
	// SetSettleAt says when SettleDue names the session; zero: never.
	SetSettleAt(ctx context.Context, sessionID string, at time.Time) error
	// SettleAt is what SetSettleAt said last.
	SettleAt(ctx context.Context, sessionID string) (time.Time, error)
}

// ErrOverspent says that a session's traffic does not allow it.
var ErrOverspent = &domain.Error{Kind: domain.Conflict, Code: "OVERSPENT", Message: "the traffic does not allow it"}

// Health keeps the health state of sessions.
type Health interface {
	// Get returns the states of those of the ids that the agent owns, with
	// their type and status; the zero state where nothing was reported yet. An
	// empty agent id asks for the service itself.
	Get(ctx context.Context, agentID string, ids []string) (map[string]HealthRead, error)
	Put(ctx context.Context, id string, s health.State) error
}

// HealthRead is the health state of a session and what a verdict needs.
type HealthRead struct {
	State   health.State
	AgentID string
	Type    session.Type
	Status  session.Status
}

// Events keeps the event feed.
type Events interface {
	// Append adds events of one session, oldest first.
	Append(ctx context.Context, sessionID string, events []eventlog.Event) error
	// Page lists events of a session, newest first.
	Page(ctx context.Context, sessionID string, page domain.Page) (domain.List[eventlog.Event], error)
	// Trim removes events from before the time, in sessions whose id follows
	// after, and returns the last id it looked at; empty: it came to the end.
	Trim(ctx context.Context, before time.Time, after string, sessions int) (string, error)
}

// Tally counts what an agent's sessions went through, ever.
type Tally struct {
	Reported  int64 // events that the agent reported
	Scored    int64 // events that say something about an exit, both sources
	Good      int64 // of these, the successes
	Rotations int64
	Bytes     int64 // both directions
}

// Counters keeps one tally an agent, so that an overview reads no history.
type Counters interface {
	Add(ctx context.Context, agentID string, t Tally) error
	// Get is the zero tally for an agent that did nothing yet.
	Get(ctx context.Context, agentID string) (Tally, error)
}

// Outcome is how a call was answered.
type Outcome int

// The outcomes. InFlight is that of a call whose answer is not known yet.
const (
	InFlight  Outcome = iota
	Completed         // what was asked for is done, or there was nothing to do
	Created           // there is something new
	Pending           // it is accepted; what comes of it is not known yet
)

// Call is one call under an Idempotency-Key.
type Call struct {
	AgentID   string
	Path      string
	Key       string
	Request   []byte  // hash of the request's meaning
	Resource  string  // the session it made or changed
	Outcome   Outcome // of the first call
	CreatedAt time.Time
}

// Idempotency keeps the keys of calls that took effect.
type Idempotency interface {
	// Find is false when the key was not used since.
	Find(ctx context.Context, agentID, path, key string, since time.Time) (Call, bool, error)
	// Put stores a call, in place of one that is older than since.
	Put(ctx context.Context, c Call) error
	// DropFor removes the keys that name a resource.
	DropFor(ctx context.Context, agentID, resource string) error
	// Purge removes keys older than the time.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}

// Addresses keeps which static addresses are taken: each is one session's alone.
type Addresses interface {
	// Taken lists the addresses of a provider that are taken.
	Taken(ctx context.Context, provider string) (map[string]bool, error)
	// Take is ErrDuplicate when one of them is taken.
	Take(ctx context.Context, provider, sessionID string, ips []string) error
	// Free gives back all addresses of a session.
	Free(ctx context.Context, sessionID string) error
}

// Change says that something which processes keep in memory is not as it was.
type Change struct {
	Agent   string // the agent that changed, or
	Session string // the session that changed
}

// Cursor is a place in the changes, between what was committed and what was not
// yet. Only the store that gave it can read it.
type Cursor string

// ErrMissed says that more has changed than can be listed.
var ErrMissed = errors.New("changes were missed")

// Changes is how replicas and the operator's commands reach each other. Put of
// Agents, Sessions and Orders note changes by themselves. A reader hears of each
// one that is committed, in whatever order units that run at once commit.
type Changes interface {
	// Last is the place behind everything that is committed.
	Last(ctx context.Context) (Cursor, error)
	// Since lists what was committed after a place, and returns the place behind
	// it. It is ErrMissed, with that place, when there is more than limit of it or
	// some of it may have been purged.
	Since(ctx context.Context, after Cursor, limit int) ([]Change, Cursor, error)
	// Purge removes changes older than the time.
	Purge(ctx context.Context, before time.Time) error
}

// The kinds of jobs. Each decides anew whether its work is due: what it was stored
// for may have been put off.
const (
	DriveOrdersJob   = "drive-orders"   // the orders of a session, or the delivery of one that has none
	ExpireSessionJob = "expire-session" // a static session whose time is up
	SettleSessionJob = "settle-session" // a dynamic session at the end of an hour, or with a lease outstanding
	ExpireTrialJob   = "expire-trial"   // an agent's trial credit
	DeliverJob       = "deliver"        // one attempt of a webhook delivery
)

// Job is work that must survive a crash. It is about a session, an agent or a
// delivery.
type Job struct {
	Kind      string
	SessionID string
	AgentID   string
	After     time.Duration
	At        time.Time // not before this; zero: After says when

	// DeliveryID is of a delivery. A job for the same one and the same At that is
	// not done yet is not inserted again.
	DeliveryID string
}

// Jobs inserts work in the unit of work that makes it necessary: it runs at
// least once after the commit, and never when the unit rolls back.
type Jobs interface {
	Insert(ctx context.Context, j Job, now time.Time) error
}

// RequeueAfter is the error of a job that cannot be done yet: it runs again after so
// long, and did not fail.
type RequeueAfter time.Duration

func (l RequeueAfter) Error() string { return "the job runs again in " + time.Duration(l).String() }
