package app

import (
	"context"
	"strconv"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
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
	var order string // of a seller
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
		done, order, err = u.renew(ctx, tx, in, now)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if !in.DryRun && !done.Replayed {
		u.hub.SessionChanged(in.SessionID)
	}
	if done.Status == inFlight {
		return u.extend(ctx, in, order)
	}
	return done, u.withDirect(ctx, &done.View)
}

// renewal is a renewal that the session, the product and the wallet allow.
type renewal struct {
	ports.SessionRead // as it will be
	was               session.Session
	provider          ports.Static
	days              int
	wallet            billing.Wallet
	cost              domain.Money
}

// renew is the unit of a renewal. At a seller it holds the money and stores the
// order, whose id it returns; else all is done.
func (u *Sessions) renew(ctx context.Context, tx ports.Tx, in Renew, now time.Time) (done Done, order string, err error) {
	b := books{tx, u.ids, now}
	n, err := u.planRenewal(ctx, b, in)
	if err != nil {
		return Done{}, "", err
	}
	if in.DryRun {
		return Done{Quote: quote(n.wallet, n.cost), Status: 200}, "", nil
	}
	if !n.provider.Capabilities().InProcess {
		return u.planExtension(ctx, b, in, n)
	}
	again := intentFor(n.was, procurement.Source{})
	again.Days = n.days
	_, err = n.provider.Renew(ctx, n.ID, again)
	u.count(n.provider, "renew", err)
	if err != nil {
		return Done{}, "", ports.Refusal(procurement.ClassOf(err))
	}
	s := n.Session
	if err := b.hold(ctx, n.wallet, &s, n.cost, renewalOf(n.was), 0); err != nil {
		return Done{}, "", err
	}
	if n.Session, err = u.renewed(ctx, b, s); err != nil {
		return Done{}, "", err
	}
	return Done{View: u.view(n.SessionRead, now), Status: 200}, "", u.keep(ctx, tx, in.AgentID, in.Call, s.ID, 200, now)
}

// renewalOf tells the hold of a renewal from the others of a session.
func renewalOf(s session.Session) string {
	return ":renew:" + strconv.FormatInt(s.ExpiresAt.Unix(), 10)
}

// renewed charges what is held for a renewal of a session that has its new end.
func (u *Sessions) renewed(ctx context.Context, b books, s session.Session) (session.Session, error) {
	if err := b.charge(ctx, &s, s.Money.Held.Total()); err != nil {
		return s, err
	}
	if err := b.tx.Sessions().Put(ctx, s); err != nil {
		return s, err
	}
	if err := expireLater(ctx, b.tx, s, b.now); err != nil {
		return s, err
	}
	return s, note(ctx, b.tx, u.ids, s.ID, "renewed", "", b.now)
}

// planRenewal judges everything that may refuse a renewal: the session before
// its price, the price before the money.
func (u *Sessions) planRenewal(ctx context.Context, b books, in Renew) (n renewal, err error) {
	if n.SessionRead, err = b.tx.Sessions().Read(ctx, in.AgentID, in.SessionID); err != nil {
		return n, err
	}
	n.was = n.Session
	if err := n.was.MayRenew(); err != nil {
		return n, err
	}
	product, err := u.catalog.product(n.was.ProductNo)
	if err != nil {
		return n, err
	}
	var price domain.Money
	if n.days, price, err = renewalDays(in.Days, n.was, product); err != nil {
		return n, err
	}
	if n.Session, err = n.was.Renew(n.days, b.now); err != nil {
		return n, err
	}
	known, _ := u.catalog.provider(n.was.Provider)
	var ok bool
	if n.provider, ok = known.(ports.Static); !ok || !n.provider.Capabilities().Renews {
		return n, ports.ErrProvider.Msgf("this provider does not renew; buy a new session")
	}
	if n.was.Money.Held.Total() > 0 {
		return n, errRenewing
	}
	n.cost = billing.IPCost(n.was.Quantity, price)
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

// errRenewing refuses a renewal while another one is on its way.
var errRenewing = session.ErrNotReady.Msgf("a renewal of this session is on its way; try again when its expires_at has changed")

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
