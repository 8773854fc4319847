package sessions

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/app/ordering"
	"agentproxy/app/settlement"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Transitions moves sessions from one status to the next, each in the transaction
// of its caller, with all that the change entails: money, events, notifications
// and jobs.
type Transitions struct {
	ids     ports.IDs
	catalog *catalogs.Catalog
	access  *fulfilment.Service
}

// NewTransitions returns Transitions.
func NewTransitions(ids ports.IDs, catalog *catalogs.Catalog, access *fulfilment.Service) *Transitions {
	return &Transitions{ids: ids, catalog: catalog, access: access}
}

var _ ordering.Lifecycle = (*Transitions)(nil)

// Sells reports whether the catalogue has a product.
func (t *Transitions) Sells(productNo string) bool {
	_, err := t.catalog.Product(productNo)
	return err == nil
}

// Activate gives a session its exits and charges a static one. Exits that are not
// what was ordered, or that another session has, are ports.ErrProvider. The
// caller stores the session.
func (t *Transitions) Activate(
	ctx context.Context, tx ordering.Repos, s session.Session, exits []session.Exit, now time.Time,
) (session.Session, error) {
	if len(exits) != s.Quantity {
		return s, ports.ErrProvider.Msgf("the upstream delivered %d addresses and not %d; try again", len(exits), s.Quantity)
	}
	if s.Type == session.Static {
		err := tx.Addresses().Take(ctx, s.Provider, s.ID, session.Addresses(exits))
		if errors.Is(err, ports.ErrDuplicate) {
			return s, ports.ErrProvider.Msgf("the upstream delivered an address that is taken; try again")
		}
		if err != nil {
			return s, err
		}
	}
	s, err := s.Activate(exits, now)
	if err != nil {
		return s, err
	}
	err = notify.SessionChanged(ctx, tx, t.ids, now, webhook.SessionActive, s)
	if err != nil || s.Type == session.Dynamic {
		return s, err
	}
	if err := ledger.NewBook(tx, t.ids, now).Charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return s, err
	}
	return s, nil
}

// Fail ends a session whose delivery was refused and gives everything back. The
// Idempotency-Key of the call is freed, so that the agent may repeat it.
func (t *Transitions) Fail(
	ctx context.Context, tx ordering.Repos, s session.Session, cause error, now time.Time,
) error {
	failure := session.Failure{Code: ports.ErrProvider.Code, Message: ports.ErrProvider.Message}
	if e, ok := errors.AsType[*domain.Error](cause); ok {
		failure = session.Failure{Code: e.Code, Message: e.Message}
	}
	s, err := s.Fail(failure, now)
	if err != nil {
		return err
	}
	if err := tx.Idempotency().DropFor(ctx, s.AgentID, s.ID); err != nil {
		return err
	}
	_, err = t.storeEnded(ctx, tx, s, webhook.SessionFailed, eventlog.Failed, failure.Code, now)
	return err
}

// Terminate ends a session before its time. It changes nothing if the session is
// over.
func (t *Transitions) Terminate(
	ctx context.Context, tx ordering.Repos, s session.Session, why session.Reason, now time.Time,
) (session.Session, error) {
	s, changed := s.Terminate(why, now)
	if !changed {
		return s, nil
	}
	return t.storeEnded(ctx, tx, s, webhook.SessionTerminated, eventlog.Terminated, string(why), now)
}

// Expire ends a session because its time or its traffic is used up.
func (t *Transitions) Expire(
	ctx context.Context, tx ordering.Repos, s session.Session, why session.Reason, now time.Time,
) error {
	s, err := s.Expire(why, now)
	if err != nil {
		return err
	}
	_, err = t.storeEnded(ctx, tx, s, webhook.SessionExpired, eventlog.Expired, string(why), now)
	return err
}

// storeEnded stores a session that has just ended, with all that its end entails.
func (t *Transitions) storeEnded(ctx context.Context, tx ordering.Repos, s session.Session, of webhook.Type,
	what, code string, now time.Time) (session.Session, error) {
	keeps, err := settlement.Unit{Tx: tx, IDs: t.ids, Now: now}.EndOrders(ctx, t.catalog, &s)
	if err != nil {
		return s, err
	}
	settleBy, err := settlement.SettleBy(ctx, tx, t.catalog, t.access, s)
	if err != nil {
		return s, err
	}
	if err := ledger.NewBook(tx, t.ids, now).Finish(ctx, &s, keeps, settleBy); err != nil {
		return s, err
	}
	if err := notify.LogEvent(ctx, tx, t.ids, s.ID, what, code, now); err != nil {
		return s, err
	}
	var cost []string
	if s.AwaitsOutcome() {
		cost = notify.Cost(s)
	}
	if err := notify.SessionChanged(ctx, tx, t.ids, now, of, s, cost...); err != nil {
		return s, err
	}
	return s, tx.Sessions().Put(ctx, s)
}

// Renewed charges what is held for a renewal by days of a session that has its new end, gives it the
// fair use that its product has today, and stores it. A product that is no longer sold has none.
func (t *Transitions) Renewed(
	ctx context.Context, tx ordering.Repos, s session.Session, days int, now time.Time,
) (session.Session, error) {
	if p, err := t.catalog.Product(s.ProductNo); err == nil {
		u, err := tx.Traffic().Usage(ctx, s.ID)
		if err != nil {
			return s, err
		}
		left := int((s.ExpiresAt.Sub(now) + session.Day - 1) / session.Day)
		s = s.ExtendFairUse(p.FairUseOf(s.Live(), days), p.FairUseOf(s.Live(), left), u.Used()+u.Leased)
	}
	if err := ledger.NewBook(tx, t.ids, now).Charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return s, err
	}
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return s, err
	}
	return s, notify.LogEvent(ctx, tx, t.ids, s.ID, eventlog.Renewed, "", now)
}

// RecordUsage books that an active direct session used that many bytes in all.
// What is beyond its limit is not charged.
func (t *Transitions) RecordUsage(
	ctx context.Context, tx ordering.Repos, s session.Session, bytes int64, now time.Time,
) error {
	before, err := tx.Traffic().Usage(ctx, s.ID)
	if err != nil {
		return err
	}
	settleAt, err := tx.Traffic().SettleAt(ctx, s.ID)
	if err != nil {
		return err
	}
	at := before.BookAt(now, settleAt.IsZero())
	_, more, err := settlement.BookUsage(ctx, tx, s, bytes, at)
	if err != nil || more == 0 {
		return err
	}
	hour := at.Truncate(time.Hour)
	switch {
	case before.Used()+more >= s.Bytes:
		err = t.Expire(ctx, tx, s, session.TrafficExhausted, now)
	case before.UpdatedAt.Before(hour):
		err = tx.Traffic().SetSettleAt(ctx, s.ID, hour.Add(time.Hour))
	}
	if err != nil {
		return err
	}
	return settlement.CountUsage(ctx, tx, s, more)
}
