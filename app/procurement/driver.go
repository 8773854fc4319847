// Package procurement drives the orders of sessions at providers: it plans, sends,
// resolves and closes them, and opens what was delivered.
package procurement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"agentproxy/app/catalog"
	"agentproxy/app/changes"
	"agentproxy/app/direct"
	"agentproxy/app/fulfilment"
	"agentproxy/app/slots"
	"agentproxy/domain"
	"agentproxy/domain/account"
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

// Driver drives the orders of sessions at providers from planned to closed.
// Every step is decided anew from what is stored, so any replica may take the
// next one, and money is spent by one call that is stored before it is made.
type Driver struct {
	store     ports.Unit[Repos]
	clock     ports.Clock
	ids       ports.IDs
	catalog   *catalog.Catalog
	hub       *changes.Hub
	lifecycle Lifecycle
	access    *fulfilment.Service
	direct    *direct.Service
	calls     ports.CallCounter
	excess    func(provider string, x domain.Money) // nil: it is not counted
	log       *slog.Logger
	slots     *slots.Slots
}

// NewDriver returns a Driver. If calls is nil they are not counted.
func NewDriver(store ports.Store, clock ports.Clock, ids ports.IDs, catalog *catalog.Catalog, hub *changes.Hub,
	lifecycle Lifecycle, access *fulfilment.Service, calls ports.CallCounter, log *slog.Logger) *Driver {
	return &Driver{store: narrow(store), clock: clock, ids: ids, catalog: catalog, hub: hub, lifecycle: lifecycle,
		access: access,
		calls:  calls, log: log, direct: direct.New(store, clock, ids, catalog, access, calls, log),
		slots: slots.New(driveAtOnce, awaitedAtMost)}
}

// CountExcess sets what counts the amounts by which orders cost more than they were to.
// It must be called before the Driver is used.
func (u *Driver) CountExcess(count func(provider string, x domain.Money)) { u.excess = count }

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

// State is a session with its orders, the newest first.
type State struct {
	Session session.Session
	Orders  []procurement.Order
	party   procurement.Party // of the agent
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

// ErrUndecided means that the orders are driven in the background.
var ErrUndecided = errors.New("the provider has not answered yet")

// DriveFor is like Drive for an agent, who waits no longer than that.
func (u *Driver) DriveFor(ctx context.Context, s session.Session, wait time.Duration) (State, error) {
	type result struct {
		State
		err error
	}
	done := make(chan result, 1)
	ended, begun := u.slots.Await(s.Provider, s.AgentID, wait, func() {
		st, err := u.Drive(ctx, s.ID)
		done <- result{st, err}
	})
	if !begun {
		item := []slots.Item{{ID: s.ID, Agent: s.AgentID}}
		u.slots.Go(s.Provider, item, func(id string) { _, _ = u.Drive(ctx, id) }) // if it fails it is due again
	}
	if !ended {
		return State{}, ErrUndecided
	}
	r := <-done
	return r.State, r.err
}

// maxSteps bounds the steps that Drive takes in a row.
const maxSteps = 20

// Drive takes all steps that are due now of a session and its orders, and returns
// them as it leaves them. A step that must wait is due at NextAt of its order. A
// cancelled context does not stop it: an order that was sent is worth money.
func (u *Driver) Drive(ctx context.Context, id string) (State, error) {
	ctx = context.WithoutCancel(ctx)
	for range maxSteps {
		st, more, err := u.step(ctx, id)
		if err != nil {
			return st, fmt.Errorf("orders of %s: %w", id, err)
		}
		if !more {
			return st, nil
		}
	}
	return u.state(ctx, id)
}

func (u *Driver) state(ctx context.Context, id string) (st State, err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx Repos) (err error) {
		if st.Session, err = tx.Sessions().Load(ctx, id); err != nil {
			return err
		}
		if st.Orders, err = tx.Orders().Of(ctx, id); len(st.Orders) > 0 {
			st.party, err = partyOf(ctx, tx, st.Session.AgentID)
		}
		return err
	})
	return st, err
}

// partyOf returns the party of an agent, as which it takes turns.
func partyOf(ctx context.Context, tx Repos, agentID string) (procurement.Party, error) {
	agent, err := tx.Agents().Get(ctx, agentID)
	if err != nil {
		return procurement.Party{}, err
	}
	w, err := tx.Ledger().Wallet(ctx, agentID)
	return procurement.Party{Key: agent.Party(), Funded: agent.Tier(w.Credited) != account.TrialTier}, err
}

// step takes the first step that is due. It returns the state that it decided by,
// and more if another step may follow.
func (u *Driver) step(ctx context.Context, id string) (st State, more bool, err error) {
	if st, err = u.state(ctx, id); err != nil {
		return st, false, err
	}
	ctx = ports.WithParty(ports.WithAgent(ctx, st.Session.AgentID), st.party)
	if len(st.Orders) == 0 {
		if st.Session.Status != session.Creating {
			return st, false, nil
		}
		return st, true, u.deliverInProcess(ctx, st.Session)
	}
	now := u.clock.Now()
	for _, o := range st.Orders {
		do := u.next(st.Session, o, now)
		if do == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		return st, true, do(ctx, st.Session, o)
	}
	return st, false, nil
}

// next returns the step of an order that is due, or nil.
func (u *Driver) next(s session.Session, o procurement.Order,
	now time.Time) func(context.Context, session.Session, procurement.Order) error {
	due := !o.NextAt.IsZero() && !now.Before(o.NextAt)
	switch {
	case o.Status == procurement.Planned && (o.Class == "" || due):
		return u.handlerOf(o).send
	case o.Status == procurement.Sent && due:
		return func(ctx context.Context, _ session.Session, o procurement.Order) error {
			return u.markUnknown(ctx, o, "the process that sent it has died")
		}
	case o.Status == procurement.Unknown && due:
		return u.handlerOf(o).resolve
	case o.Status != procurement.Confirmed || !due:
		return nil
	case s.AwaitsOutcome() && o.Undelivered():
		return deliveries{u}.await
	case s.Status.Over():
		return deliveries{u}.end
	case s.Status == session.Active: // whatever State the order has at the moment
		return deliveries{u}.check
	}
	return deliveries{u}.await
}

// handler has the steps in which purchases and renewals differ.
type handler interface {
	// send places a planned order.
	send(ctx context.Context, s session.Session, o procurement.Order) error
	// resolve asks the provider for the outcome of an unknown order.
	resolve(ctx context.Context, s session.Session, o procurement.Order) error
	// confirm takes what the provider has for an order.
	confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error
	// refused is the consequence of a refusal, in its transaction.
	refused(ctx context.Context, tx Repos, s session.Session, o procurement.Order, now time.Time) error
}

// handlerOf returns the handler of an order.
func (u *Driver) handlerOf(o procurement.Order) handler {
	if o.Renews() {
		return renewals{u}
	}
	return purchases{u}
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
