package settlement

import (
	"context"

	"agentproxy/app/notify"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
)

// Charge charges an ended session what it holds for an order that was delivered
// after its end, stores it, and closes what was delivered, which is the service's. It
// changes nothing if the session holds nothing for an order.
func (u Unit) Charge(ctx context.Context, s session.Session, o procurement.Order) error {
	if !s.AwaitsOutcome() {
		return nil
	}
	if err := u.book().Charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return err
	}
	return u.settled(ctx, s, o, eventlog.Charged)
}

// ReleaseHeld releases what an ended session holds for an order that was refused, or
// that the provider took back, and stores it. It changes nothing if the session
// holds nothing for an order.
func (u Unit) ReleaseHeld(ctx context.Context, s session.Session, o procurement.Order) error {
	if !s.AwaitsOutcome() {
		return nil
	}
	if err := release(ctx, u.book(), &s, o, "was refused"); err != nil {
		return err
	}
	return u.settled(ctx, s, o, eventlog.Released)
}

// settled stores a session whose last order is decided, and notifies its agent. What
// was bought is kept at the provider until then: its end proves a renewal.
func (u Unit) settled(ctx context.Context, s session.Session, o procurement.Order, what string) error {
	if err := u.Tx.Sessions().Put(ctx, s); err != nil {
		return err
	}
	if o.Renews() {
		orders, err := u.Tx.Orders().Of(ctx, s.ID)
		if err != nil {
			return err
		}
		if err := closeDelivered(ctx, u.Tx, orders, u.Now); err != nil {
			return err
		}
	}
	if err := notify.LogEvent(ctx, u.Tx, u.IDs, s.ID, what, "", u.Now); err != nil {
		return err
	}
	return notify.SessionChanged(ctx, u.Tx, u.IDs, u.Now, endEvent(s.Status), s, notify.Cost(s)...)
}

// endEvent returns the webhook event of an end. It is sent again when the money of the
// session is settled.
func endEvent(s session.Status) webhook.Type {
	if s == session.Expired {
		return webhook.SessionExpired
	}
	return webhook.SessionTerminated
}
