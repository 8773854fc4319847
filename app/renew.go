package app

import (
	"context"
	"strconv"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Renew asks for more days of a static session.
type Renew struct {
	AgentID   string
	SessionID string
	Days      string // decimal text; empty: the session's own duration
	Call      Call
	DryRun    bool
}

// Renew extends a static session from the moment it would have ended, at
// today's price.
func (u *Sessions) Renew(ctx context.Context, in Renew) (Done, error) {
	var done Done
	unit := u.store.Update
	if in.DryRun {
		unit, in.Call = u.store.View, Call{}
	}
	err := unit(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		prev, replay, err := u.replayed(ctx, tx, in.AgentID, in.Call, now)
		if err != nil || replay {
			done = prev
			return err
		}
		done, err = u.renew(ctx, tx, in, now)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if !in.DryRun && !done.Replayed {
		u.hub.SessionChanged(in.SessionID)
	}
	return done, nil
}

// renewal is a renewal that the session, the product and the wallet allow.
type renewal struct {
	ports.SessionRead           // as it will be
	was               time.Time // when it would have ended
	order             ports.OldOrder
	provider          ports.OldProvider
	wallet            billing.Wallet
	cost              domain.Money
}

func (u *Sessions) renew(ctx context.Context, tx ports.Tx, in Renew, now time.Time) (Done, error) {
	b := books{tx, u.ids, now}
	n, err := u.planRenewal(ctx, b, in)
	if err != nil {
		return Done{}, err
	}
	if in.DryRun {
		return Done{Quote: quote(n.wallet, n.cost), Status: 200}, nil
	}
	s := n.Session
	if err := n.provider.Extend(ctx, n.order, s.ExpiresAt); err != nil {
		return Done{}, err
	}
	what := ":renew:" + strconv.FormatInt(n.was.Unix(), 10)
	if err := b.hold(ctx, n.wallet, &s, n.cost, what, 0); err != nil {
		return Done{}, err
	}
	if err := b.charge(ctx, &s, n.cost); err != nil {
		return Done{}, err
	}
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return Done{}, err
	}
	if err := expireLater(ctx, tx, s, now); err != nil {
		return Done{}, err
	}
	if err := note(ctx, tx, u.ids, s.ID, "renewed", "", now); err != nil {
		return Done{}, err
	}
	n.Session = s
	return Done{View: u.view(n.SessionRead, now), Status: 200}, u.keep(ctx, tx, in.AgentID, in.Call, s.ID, 200, now)
}

// planRenewal judges everything that may refuse a renewal: the session before
// its price, the price before the money.
func (u *Sessions) planRenewal(ctx context.Context, b books, in Renew) (n renewal, err error) {
	if n.SessionRead, err = b.tx.Sessions().Read(ctx, in.AgentID, in.SessionID); err != nil {
		return n, err
	}
	s := n.Session
	if err := s.MayRenew(); err != nil {
		return n, err
	}
	var product catalog.Product
	if product, n.provider, err = u.catalog.product(s.ProductNo); err != nil {
		return n, err
	}
	days, price, err := renewalDays(in.Days, s, product)
	if err != nil {
		return n, err
	}
	n.was = s.ExpiresAt
	if n.Session, err = s.Renew(days, b.now); err != nil {
		return n, err
	}
	if !n.provider.Local() {
		return n, ports.ErrProvider.Msgf("this provider does not renew; buy a new session")
	}
	n.order = u.orderOf(s)
	n.order.Days = days
	n.cost = billing.IPCost(s.Quantity, price)
	if n.wallet, err = b.wallet(ctx, in.AgentID, in.DryRun); err != nil {
		return n, err
	}
	// A renewal adds no live session, so their limit is not asked.
	if err := n.wallet.MaySpend(n.cost, b.now); err != nil {
		return n, err
	}
	_, err = n.wallet.Hold(n.cost)
	return n, err
}

// renewalDays is how many days a renewal adds, and today's price of an IP.
func renewalDays(text string, s session.Session, p catalog.Product) (int, domain.Money, error) {
	days := s.Days
	if text != "" {
		n, err := domain.ParseDecimal(text, 0)
		if err != nil || n < 1 || n > 3650 {
			return 0, 0, domain.InvalidField("duration_days", "must be a duration that the product lists")
		}
		days = int(n)
	}
	price, ok := p.PriceFor(days)
	if !ok {
		return 0, 0, domain.InvalidField("duration_days", "must be a duration that the product lists")
	}
	return days, price, nil
}
