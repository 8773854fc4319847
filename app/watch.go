package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// await reads an order that the provider has accepted and not delivered yet.
// After procurement.FreezeAfter the operator is told.
func (u *Sessions) await(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return u.later(ctx, o, "the provider is not configured")
	}
	bounded, cancel := call(ctx)
	defer cancel()
	d, err := p.Read(bounded, o.Ref)
	u.count(p, "read", err)
	if procurement.ClassOf(err) == procurement.NotFound && u.clock.Now().Sub(o.SentAt) >= procurement.SettleFor {
		d, err = procurement.Delivery{Ref: o.Ref, State: procurement.Gone}, nil
	}
	if err != nil {
		return u.later(ctx, o, procurement.ReasonOf(err))
	}
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if s.Status == session.Active {
			return nil // of an active session somebody else has taken it meanwhile, and it is checked from now on
		}
		if o = o.Take(d, b.now); d.State == procurement.Pending && b.now.Sub(o.SentAt) >= procurement.FreezeAfter && o.FrozenAt.IsZero() {
			o.FrozenAt = b.now
			u.log.Error("an upstream order is not delivered for a day", "order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider)
		}
		return u.taken(ctx, b, s, o, d)
	})
}

// later puts an order off.
func (u *Sessions) later(ctx context.Context, o procurement.Order, reason string) error {
	return u.mark(ctx, o, func(ctx context.Context, b books, _ session.Session, o procurement.Order) error {
		if !o.ClosedAt.IsZero() {
			return nil // somebody else was not put off
		}
		o.Reason, o.NextAt = reason, b.now.Add(procurement.Backoff(b.now.Sub(o.DecidedAt)))
		return b.tx.Orders().Put(ctx, o)
	})
}

// closeOrder gives up what was bought for a session that has ended. What cannot
// be given up runs to its end.
func (u *Sessions) closeOrder(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return u.later(ctx, o, "the provider is not configured")
	}
	bounded, cancel := call(ctx)
	defer cancel()
	err := p.Cancel(bounded, o.Ref)
	u.count(p, "cancel", err)
	reason := ""
	switch procurement.ClassOf(err) {
	case "", procurement.NotFound:
	case procurement.Unsupported:
		reason = "it runs to its end at the provider"
	default:
		return u.later(ctx, o, procurement.ReasonOf(err))
	}
	return u.mark(ctx, o, func(ctx context.Context, b books, _ session.Session, o procurement.Order) error {
		o.ClosedAt, o.NextAt, o.Reason = b.now, time.Time{}, reason
		return b.tx.Orders().Put(ctx, o)
	})
}

// check asks whether a live order is still there, and takes over what has
// changed. One that is gone for procurement.LostAfter ends the session, and the unused
// part is refunded.
func (u *Sessions) check(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return u.later(ctx, o, "the provider is not configured")
	}
	g, err := u.unseal(o)
	if err != nil {
		return err
	}
	if g.Direct {
		if err := u.pollUsage(ctx, p, s, o); err != nil {
			return u.later(ctx, o, procurement.ReasonOf(err))
		}
	}
	bounded, cancel := call(ctx)
	defer cancel()
	d, err := p.Read(bounded, o.Ref)
	u.count(p, "read", err)
	gone := procurement.ClassOf(err) == procurement.NotFound || err == nil && d.State == procurement.Gone
	if err != nil && !gone {
		return u.later(ctx, o, procurement.ReasonOf(err))
	}
	err = u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		if gone && o.LostAt.IsZero() {
			o.LostAt = b.now
		}
		switch {
		case s.Status != session.Active:
			return nil
		case gone && b.now.Sub(o.LostAt) < procurement.LostAfter:
			o.NextAt = o.LostAt.Add(procurement.LostAfter)
			return b.tx.Orders().Put(ctx, o)
		case gone:
			o.State, o.ClosedAt, o.NextAt = procurement.Gone, b.now, time.Time{}
			if err := b.tx.Orders().Put(ctx, o); err != nil {
				return err
			}
			_, err := u.terminate(ctx, b.tx, s, session.ProviderLost, b.now)
			return err
		}
		return u.refresh(ctx, b, s, o, d, g.Direct)
	})
	if errors.Is(err, ports.ErrDuplicate) { // the one who has it may have to lose it first
		return u.later(ctx, o, "another session has an address of it")
	}
	return err
}

// refresh takes over what a provider changed of a live order: new credentials, a
// new end, an address that it replaced.
func (u *Sessions) refresh(ctx context.Context, b books, s session.Session, o procurement.Order, d procurement.Delivery, direct bool) (err error) {
	if d.State == procurement.Live {
		if o.Goods, err = u.seal(o, d, direct); err != nil {
			return err
		}
	}
	o = o.Take(d, b.now)
	o.LostAt, o.NextAt = time.Time{}, b.now.Add(checkAfter(direct))
	exits := exitsOf(s, d)
	if s.Type == session.Static && d.State == procurement.Live && len(exits) == s.Quantity && !sameExits(exits, s.Exits) {
		ips := make([]string, len(exits))
		for i, e := range exits {
			ips[i] = e.IP.String()
		}
		if err := b.tx.Addresses().Free(ctx, s.ID); err != nil {
			return err
		}
		if err := b.tx.Addresses().Take(ctx, s.Provider, s.ID, ips); err != nil {
			return err
		}
		s.Exits = exits
		if err := note(ctx, b.tx, u.ids, s.ID, "replaced", "", b.now); err != nil {
			return err
		}
		if err := b.tx.Sessions().Put(ctx, s); err != nil {
			return err
		}
	}
	return b.tx.Orders().Put(ctx, o)
}

// sameExits compares without regard to the order.
func sameExits(a, b []session.Exit) bool {
	for _, e := range a {
		if !slices.Contains(b, e) {
			return false
		}
	}
	return len(a) == len(b)
}

// endOrders sees to the orders of a session that ends, in its unit: what was not
// sent is not sent any more, what is held for a renewal is given back, what is
// there is given up. The caller stores the session afterwards.
func (u *Sessions) endOrders(ctx context.Context, b books, s *session.Session) error {
	if _, local := u.catalog.local(s.Provider); local {
		return nil // what was tried before at sellers was refused
	}
	orders, err := b.tx.Orders().Of(ctx, s.ID)
	if err != nil || len(orders) == 0 {
		return err
	}
	for _, o := range orders {
		if o.Kind == procurement.Renewal && o.Open() {
			if err := b.releaseRenewal(ctx, s, o, "was too late"); err != nil {
				return err
			}
		}
		switch {
		case o.Status == procurement.Planned:
			if o, err = o.Refuse(procurement.Temporary, "the session ended first", b.now); err != nil {
				return err
			}
			if err := b.tx.Idempotency().DropFor(ctx, s.AgentID, s.ID+orderMark+o.ID); err != nil {
				return err
			}
		case o.Status == procurement.Confirmed && o.ClosedAt.IsZero():
			o.NextAt = b.now
		default:
			continue
		}
		if err := b.tx.Orders().Put(ctx, o); err != nil {
			return err
		}
	}
	return b.tx.Jobs().Insert(ctx, ports.Job{Kind: ReleaseJob, SessionID: s.ID}, b.now)
}
