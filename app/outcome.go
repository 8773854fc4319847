package app

import (
	"context"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// completeFor is how long a seller may deliver addresses one after the other.
const completeFor = 10 * time.Minute

// checkEvery is how often a provider is asked whether a live order is still
// there.
const checkEvery = time.Hour

// doubt notes that nobody knows the outcome of an order.
func (u *Sessions) doubt(ctx context.Context, o procurement.Order, reason string) error {
	var frozen bool
	err := u.mark(ctx, o, func(ctx context.Context, b books, _ session.Session, o procurement.Order) error {
		before := o.FrozenAt
		o, err := o.MarkUnknown(reason, b.now)
		if err != nil {
			return err
		}
		frozen = before.IsZero() && !o.FrozenAt.IsZero()
		return b.tx.Orders().Put(ctx, o)
	})
	if err == nil && frozen {
		u.log.Error("an upstream order is unknown for a day; decide with: agentproxy orders adopt or release",
			"order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider)
	}
	return err
}

// refuse notes that an order provably bought nothing, and goes on: with the next
// source, or by giving the money back. What was proven before the order was sent
// proves nothing once somebody else has sent it.
func (u *Sessions) refuse(ctx context.Context, o procurement.Order, c procurement.Class, reason string) error {
	u.log.Warn("a provider refused an order", "order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider,
		"class", string(c), "reason", reason)
	proven := o.Status
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if proven == procurement.Planned && o.Status != procurement.Planned {
			return procurement.ErrDecided
		}
		o, err := o.Refuse(c, reason, b.now)
		if err != nil {
			return err
		}
		if err := b.tx.Orders().Put(ctx, o); err != nil {
			return err
		}
		if o.Kind == procurement.Renewal {
			return u.renewalRefused(ctx, b, s, o)
		}
		if s.Status != session.Creating {
			return nil
		}
		return u.tryNext(ctx, b, s, o)
	})
}

// tryNext goes to the next source of a session whose order was refused, in the
// unit of the refusal; without one the session fails.
func (u *Sessions) tryNext(ctx context.Context, b books, s session.Session, refused procurement.Order) error {
	product, err := u.catalog.product(s.ProductNo)
	if err != nil {
		return u.failIn(ctx, b, s, ports.Refusal(refused.Class))
	}
	orders, err := b.tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return err
	}
	tried := map[[2]string]bool{}
	for _, o := range orders {
		tried[[2]string{o.Provider, o.Intent.SKU}] = true
	}
	for _, from := range u.catalog.sources(product, s.Location, s.Days) {
		if tried[[2]string{from.Provider, from.SKU}] {
			continue
		}
		s.Provider = from.Provider
		if p, ok := u.catalog.local(from.Provider); ok {
			active, err := u.activateLocal(ctx, b, s, from, p)
			if refusedHere(err) {
				continue
			}
			if err != nil {
				return err
			}
			return b.tx.Sessions().Put(ctx, active)
		}
		if err := u.planOrder(ctx, b.tx, s, from, b.now); err != nil {
			return err
		}
		return b.tx.Sessions().Put(ctx, s)
	}
	s.Provider = refused.Provider
	return u.failIn(ctx, b, s, ports.Refusal(refused.Class))
}

// confirm takes what a provider has for an order, also when the session has
// ended meanwhile: then it is given up at once.
func (u *Sessions) confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error {
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if o.Status == procurement.Refused {
			u.log.Error("a provider made an order that was taken for refused; cancel it there",
				"order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider, "ref", d.Ref)
		}
		o, err := o.Confirm(d, b.now)
		if err != nil {
			return err
		}
		return u.taken(ctx, b, s, o, d)
	})
}

// taken stores a confirmed purchase as the provider has it, and activates the
// session as soon as it is delivered.
func (u *Sessions) taken(ctx context.Context, b books, s session.Session, o procurement.Order, d procurement.Delivery) (err error) {
	if d.State == procurement.Live && s.Type == session.Static && len(d.IPs) < o.Intent.Quantity && b.now.Sub(o.SentAt) < completeFor {
		d.State = procurement.Pending
		o = o.Take(d, b.now)
	}
	direct := u.sellsDirect(s)
	if o.Goods, err = u.seal(o, d, direct); err != nil {
		return err
	}
	switch {
	case s.Status.Over():
		o.NextAt = b.now
	case d.State == procurement.Gone:
		o.ClosedAt, o.NextAt, o.Reason = b.now, time.Time{}, "the provider took it back"
		err = u.failIn(ctx, b, s, ports.ErrProvider)
	case d.State == procurement.Live:
		o.NextAt = b.now.Add(checkAfter(direct))
		var active session.Session
		if active, err = u.activate(ctx, b, s, exitsOf(s, d)); refusedHere(err) {
			o.NextAt = b.now
			err = u.failIn(ctx, b, s, err)
		} else if err == nil {
			err = b.tx.Sessions().Put(ctx, active)
		}
	}
	if err != nil {
		return err
	}
	return b.tx.Orders().Put(ctx, o)
}

// exitsOf are the exits of a delivery. A dynamic session at an upstream has one
// that nobody knows the address of.
func exitsOf(s session.Session, d procurement.Delivery) []session.Exit {
	if s.Type == session.Dynamic && len(d.IPs) == 0 {
		return []session.Exit{{}}
	}
	exits := make([]session.Exit, len(d.IPs))
	for i, ip := range d.IPs {
		exits[i].IP = ip.Addr
	}
	return exits
}

// checkAfter is how long a live order is left alone.
func checkAfter(direct bool) time.Duration {
	if direct {
		return pollDirect
	}
	return checkEvery
}
