// Package ordering drives the orders of sessions at providers: it plans, sends,
// resolves and closes them, and opens what was delivered.
package ordering

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/exitgate"
	"agentproxy/app/fulfilment"
	"agentproxy/app/settlement"
	"agentproxy/app/slots"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/fair"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Lifecycle is what an order does to the session that it was made for. Each
// method runs in the transaction of its caller.
type Lifecycle interface {
	// Activate gives a session its exits. It returns an error for which
	// ports.NothingBought is true if they are not what was ordered.
	Activate(
		ctx context.Context, tx Repos, s session.Session, exits []session.Exit, now time.Time,
	) (session.Session, error)
	// Fail ends a session that is creating and gives everything back.
	Fail(ctx context.Context, tx Repos, s session.Session, cause error, now time.Time) error
	// Terminate ends a session before its time.
	Terminate(
		ctx context.Context, tx Repos, s session.Session, why session.Reason, now time.Time,
	) (session.Session, error)
	// Renewed charges what is held for a renewal by days of a session that has its new end.
	Renewed(ctx context.Context, tx Repos, s session.Session, days int, now time.Time) (session.Session, error)
	// RecordUsage books that the session used that many bytes in all.
	RecordUsage(ctx context.Context, tx Repos, s session.Session, bytes int64, now time.Time) error
}

const (
	driveAtOnce = 8 // sessions of one provider that are driven at once
	// awaitedAtMost bounds the calls of agents that go on at one provider, answered or not.
	awaitedAtMost = 256
)

// Driver drives the orders of sessions at providers from planned to closed. Every step is decided anew from what is
// stored, so any replica may take the next one, and money is spent by one call that is stored before it is made.
type Driver struct {
	// Gate holds exits to the rules of sessions; nil: none meets any.
	Gate      *exitgate.Gate
	store     ports.Unit[Repos]
	clock     ports.Clock
	ids       ports.IDs
	catalog   *catalogs.Catalog
	hub       *changes.Hub
	lifecycle Lifecycle
	access    *fulfilment.Service
	funding   account.Funding
	direct    *settlement.Direct
	calls     ports.CallCounter
	excess    func(provider string, x domain.Money) // nil: it is not counted
	log       *slog.Logger
	slots     *slots.Slots
}

// NewDriver returns a Driver. If calls is nil they are not counted.
func NewDriver(base ports.Base, catalog *catalogs.Catalog, hub *changes.Hub, lifecycle Lifecycle,
	access *fulfilment.Service, funding account.Funding, calls ports.CallCounter) *Driver {
	return &Driver{store: narrow(base.Store), clock: base.Clock, ids: base.IDs, catalog: catalog, hub: hub,
		lifecycle: lifecycle, access: access, funding: funding, calls: calls, log: base.Log,
		direct: settlement.NewDirect(base.Store, base.Clock, base.IDs, catalog, access, calls, base.Log),
		slots:  slots.New(driveAtOnce, awaitedAtMost)}
}

// CountExcess sets what counts the excess of orders and the restarts of counters, before the Driver is used.
func (u *Driver) CountExcess(excess func(provider string, x domain.Money), restarts func(provider string)) {
	u.excess = excess
	u.direct.CountRestarts(restarts)
}

const (
	// callTimeout bounds the calls of a provider that only read.
	callTimeout = 30 * time.Second
	// moneyTimeout bounds the call that may spend money. Providers that execute an order
	// before they answer document up to 120 s. It stays below procurement.SendTimeout.
	moneyTimeout = 130 * time.Second
	// stepTimeout bounds all calls of one step.
	stepTimeout = 2*callTimeout + moneyTimeout
)

func withCallTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

const notConfigured = "the provider is not configured"

// State is a session with its orders, the newest first.
type State struct {
	Session session.Session
	Orders  []procurement.Order
	party   fair.Party // of the agent
}

// Order returns the order with an id, or the zero Order.
func (s State) Order(id string) procurement.Order {
	for _, o := range s.Orders {
		if o.ID == id {
			return o
		}
	}
	return procurement.Order{}
}

func (u *Driver) state(ctx context.Context, id string) (st State, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if st.Session, err = tx.Sessions().Load(ctx, id); err != nil {
			return err
		}
		if st.Orders, err = tx.Orders().Of(ctx, id); len(st.Orders) > 0 {
			st.party, err = partyOf(ctx, tx, st.Session.AgentID, u.funding)
		}
		return err
	})
	return st, err
}

// partyOf returns the party of an agent, as which it takes turns.
func partyOf(ctx context.Context, tx Repos, agentID string, from account.Funding) (fair.Party, error) {
	agent, err := tx.Agents().Get(ctx, agentID)
	if err != nil {
		return fair.Party{}, err
	}
	w, err := tx.Ledger().Wallet(ctx, agentID)
	return fair.Party{Key: agent.Party(), Funded: agent.Tier(w.Credited(), from) != account.TrialTier}, err
}

// read reads an order at its provider.
func (u *Driver) read(ctx context.Context, p ports.Provider, ref string) (procurement.Delivery, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	d, err := p.Read(ctx, ref)
	u.calls.Count(p, "read", err)
	return d, err
}

// change is a transaction on an order and its session, as they are now.
type change struct {
	tx      Repos
	now     time.Time
	session session.Session
	order   procurement.Order
}

// put stores the order.
func (c *change) put(ctx context.Context) error { return c.tx.Orders().Put(ctx, c.order) }

// change is like mark for a change that concerns the session, which is announced.
func (u *Driver) change(ctx context.Context, o procurement.Order, fn func(ctx context.Context, c *change) error) error {
	err := u.mark(ctx, o, fn)
	if err == nil {
		u.hub.SessionChanged(o.SessionID)
	}
	return err
}

// mark changes an order in one transaction. The session is locked before the
// order, as everywhere. An order that is decided meanwhile stays as it is.
func (u *Driver) mark(ctx context.Context, o procurement.Order, fn func(ctx context.Context, c *change) error) error {
	var before procurement.Order
	var c change
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		if err != nil {
			return err
		}
		if before, err = tx.Orders().Get(ctx, o.ID); err != nil {
			return err
		}
		c = change{tx: tx, now: u.clock.Now(), session: s, order: before}
		return fn(ctx, &c)
	})
	if err == nil {
		u.direct.ReportRestart(before, c.order)
	}
	if err == nil && c.order.Excess() > before.Excess() {
		u.reportExcess(c.order, c.order.Excess()-before.Excess())
	}
	if errors.Is(err, procurement.ErrDecided) {
		return nil
	}
	return err
}

// postpone moves the next step of an order by its backoff.
func (u *Driver) postpone(ctx context.Context, o procurement.Order, reason string) error {
	return u.mark(ctx, o, func(ctx context.Context, c *change) error {
		if !c.order.ClosedAt.IsZero() {
			return nil // another process has closed it meanwhile
		}
		c.order = c.order.Postpone(reason, c.now)
		return c.put(ctx)
	})
}

// reportExcess reports that a provider charged more than an order was to cost. It is too
// late to refuse it.
func (u *Driver) reportExcess(o procurement.Order, more domain.Money) {
	u.log.Warn("a provider charged more for an order than its agent pays; look at its prices", "order_id", o.ID,
		"session_id", o.SessionID, "provider", o.Provider, "cost", o.Cost.String(), "max_cost", o.Intent.MaxCost.String())
	if u.excess != nil {
		u.excess(o.Provider, more)
	}
}
