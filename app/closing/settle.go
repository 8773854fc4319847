package closing

import (
	"context"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Charge charges an ended session what it holds for an order that was delivered
// after its end, stores it, and closes what was delivered, which is the service's. It
// changes nothing if the session holds nothing for an order.
func Charge(
	ctx context.Context, tx Repos, ids ports.IDs, s session.Session, o procurement.Order, now time.Time,
) error {
	if !s.AwaitsOutcome() {
		return nil
	}
	if err := ledger.NewBook(tx, ids, now).Charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return err
	}
	return settled(ctx, tx, ids, s, o, eventlog.Charged, now)
}

// GiveBack releases what an ended session holds for an order that was refused, or
// that the provider took back, and stores it. It changes nothing if the session
// holds nothing for an order.
func GiveBack(
	ctx context.Context, tx Repos, ids ports.IDs, s session.Session, o procurement.Order, now time.Time,
) error {
	if !s.AwaitsOutcome() {
		return nil
	}
	if err := release(ctx, ledger.NewBook(tx, ids, now), &s, o, "was refused"); err != nil {
		return err
	}
	return settled(ctx, tx, ids, s, o, eventlog.Released, now)
}

// settled stores a session whose last order is decided, and notifies its agent. What
// was bought is kept at the provider until then: its end proves a renewal.
func settled(
	ctx context.Context, tx Repos, ids ports.IDs, s session.Session, o procurement.Order, what string, now time.Time,
) error {
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return err
	}
	if o.Renews() {
		orders, err := tx.Orders().Of(ctx, s.ID)
		if err != nil {
			return err
		}
		if err := closeDelivered(ctx, tx, orders, now); err != nil {
			return err
		}
	}
	if err := notify.LogEvent(ctx, tx, ids, s.ID, what, "", now); err != nil {
		return err
	}
	return notify.SessionChanged(ctx, tx, ids, now, endEvent(s.Status), s, notify.Cost(s)...)
}

// endEvent returns the webhook event of an end. It is sent again when the money of the
// session is settled.
func endEvent(s session.Status) webhook.Type {
	if s == session.Expired {
		return webhook.SessionExpired
	}
	return webhook.SessionTerminated
}
