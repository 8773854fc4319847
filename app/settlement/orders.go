// Package settlement ends the orders of sessions that end, and settles the money that an
// ended session still holds once the outcome of its order is known.
package settlement

import (
	"context"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Repos is the repositories of a session that ends and of its orders.
type Repos interface {
	idempotency.Repos
	ledger.Repos
	Orders() ports.Orders
	Sessions() ports.Sessions
	Events() ports.Events
}

// Unit is a unit of work in which sessions and their orders end.
type Unit struct {
	Tx  Repos
	IDs ports.IDs
	Now time.Time
}

// EndOrders ends the orders of a session that ends, in its transaction: planned ones
// are refused, money that is held for a renewal which was not sent is given back,
// and a job closes what is live. It reports whether the session keeps what it
// holds: an order of it was sent, and the provider takes nothing back. The caller
// stores the session afterwards.
func (u Unit) EndOrders(ctx context.Context, c *catalogs.Catalog, s *session.Session) (keeps bool, err error) {
	if _, local := c.InProcess(s.Provider); local {
		return false, nil // what was tried before at sellers was refused
	}
	orders, err := u.Tx.Orders().Of(ctx, s.ID)
	if err != nil || len(orders) == 0 {
		return false, err
	}
	e := ending{tx: u.Tx, book: u.book(), catalog: c, session: s, now: u.Now}
	for _, o := range orders {
		kept, err := e.order(ctx, o)
		if err != nil {
			return false, err
		}
		keeps = keeps || kept
	}
	due := u.Now
	if keeps {
		due = time.Time{} // what is closed now could not show later whether it was renewed
	}
	if err := closeDelivered(ctx, u.Tx, orders, due); err != nil {
		return false, err
	}
	return keeps, u.Tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DriveOrdersJob, SessionID: s.ID}, u.Now)
}

// ending is the end of a session, in its transaction.
type ending struct {
	tx      Repos
	book    ledger.Book
	catalog *catalogs.Catalog
	session *session.Session
	now     time.Time
}

// order ends one order, unless its outcome is still to come. It reports whether
// the session keeps what it holds for the order.
func (e ending) order(ctx context.Context, o procurement.Order) (keeps bool, err error) {
	renewing := o.Renewing()
	if renewing {
		// A repeated call is then checked by the session as it is now: it has ended.
		resource := idempotency.RenewalResource(o.SessionID, o.ID)
		if err := e.tx.Idempotency().DropFor(ctx, e.session.AgentID, resource); err != nil {
			return false, err
		}
	}
	if !o.Undelivered() {
		return false, nil
	}
	keeps = e.fault() == "" && keepsHeld(e.catalog, o)
	if renewing && !keeps {
		if err := release(ctx, e.book, e.session, o, "was too late"); err != nil {
			return false, err
		}
	}
	if o.Status != procurement.Planned {
		return keeps, nil
	}
	if o, err = o.Refuse(procurement.Temporary, "the session ended first", e.now); err != nil {
		return false, err
	}
	return false, e.tx.Orders().Put(ctx, o)
}

// fault returns the reason of an end that the provider caused, or an empty one: the
// agent pays for nothing then that is not delivered yet.
func (e ending) fault() session.Reason {
	if r := e.session.Reason; r == session.ProviderFailed || r == session.ProviderLost {
		return r
	}
	return ""
}

// keepsHeld reports whether a session that ends keeps what it holds for an order that is not delivered: the order
// was sent, and its provider does not cancel it unused.
func keepsHeld(c *catalogs.Catalog, o procurement.Order) bool {
	if o.Status == procurement.Planned || o.Renewing() {
		return o.Status != procurement.Planned
	}
	p, known := c.Provider(o.Provider)
	return !known || !p.Capabilities().CanCancel(o.Intent.Type)
}

// closeDelivered sets when what was delivered for an ended session is closed at the provider.
// Those that are not delivered yet keep their time.
func closeDelivered(ctx context.Context, tx Repos, orders []procurement.Order, due time.Time) error {
	for _, o := range orders {
		if !o.Closable() || o.Undelivered() && due.IsZero() {
			continue
		}
		o.NextAt = due
		if err := tx.Orders().Put(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// release gives back what a session holds for an order, to the budget of the day
// that it was held on.
func release(ctx context.Context, b ledger.Book, s *session.Session, o procurement.Order, why string) error {
	h := o.Hold(*s)
	return b.Release(ctx, s, h.Ref, h.Title+" "+why, h.At)
}

// Release gives back what an active session holds for a renewal that was refused.
// The caller stores the session afterwards.
func (u Unit) Release(ctx context.Context, s *session.Session, o procurement.Order) error {
	return release(ctx, u.book(), s, o, "was refused")
}

func (u Unit) book() ledger.Book { return ledger.NewBook(u.Tx, u.IDs, u.Now) }

// Renewing reports whether a renewal of a session was sent and is not decided: the
// end of the session may be about to move.
func Renewing(ctx context.Context, tx Repos, s session.Session) (bool, error) {
	if !s.Renewing() {
		return false, nil
	}
	orders, err := tx.Orders().Of(ctx, s.ID)
	for _, o := range orders {
		if o.Renewing() && o.Status != procurement.Planned {
			return true, err
		}
	}
	return false, err
}
