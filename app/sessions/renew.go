package sessions

import (
	"context"
	"slices"
	"strconv"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Renew asks for more days of a static session.
type Renew struct {
	AgentID   string
	By        account.Spender
	SessionID string
	Days      string        // decimal text; empty: the session's own duration
	MaxCost   *domain.Money // nil: none
	Call      idempotency.Call
	DryRun    bool
}

// Renew extends a static session from the moment it would have ended, at
// today's price.
func (u *Service) Renew(ctx context.Context, in Renew) (Done, error) {
	if in.MaxCost != nil && *in.MaxCost <= 0 {
		return Done{}, domain.InvalidField("max_cost", "must be an amount above 0 with at most 6 decimals")
	}
	var done Done
	var order string // of a seller
	unit := u.store.Update
	if in.DryRun {
		unit, in.Call = u.store.View, idempotency.Call{}
	}
	err := unit(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
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
	if done.Outcome == ports.InFlight {
		return u.extend(ctx, in, done.View.Session, order)
	}
	done.View.Direct, err = u.access.Direct(ctx, done.View.Session)
	return done, err
}

// renewal is a renewal that the session, the product and the wallet allow.
type renewal struct {
	ports.SessionRead // as it will be
	was               session.Session
	provider          ports.Static
	days              int
	wallet            billing.Wallet
	cost              domain.Money
	means             billing.FundingSource // that may pay
}

// renew runs the unit of a renewal. At a seller it holds the money and stores the
// order, whose id it returns; else all is done.
func (u *Service) renew(ctx context.Context, tx Repos, in Renew, now time.Time) (done Done, order string, err error) {
	n, err := u.planRenewal(ctx, tx, in, now)
	if err != nil {
		return Done{}, "", err
	}
	if in.DryRun {
		return Done{Quote: ledger.QuoteOf(n.wallet, n.cost), Outcome: ports.Completed}, "", nil
	}
	if !n.provider.Capabilities().InProcess {
		return u.planExtension(ctx, tx, in, n, now)
	}
	if err := u.driver.Extend(ctx, n.provider, n.was, n.days); err != nil {
		return Done{}, "", err
	}
	s := n.Session
	if err := ledger.NewBook(tx, u.ids, now).Hold(ctx, n.wallet, &s, n.cost, n.means, renewalRef(n.was), 0); err != nil {
		return Done{}, "", err
	}
	if n.Session, err = u.transitions.Renewed(ctx, tx, s, n.days, now); err != nil {
		return Done{}, "", err
	}
	return Done{View: u.view(n.SessionRead, now), Outcome: ports.Completed}, "",
		idempotency.Store(ctx, tx, in.AgentID, in.Call, s.ID, ports.Completed, now)
}

// planExtension holds the cost of a renewal and stores its order. The end of the
// session moves when the provider has confirmed it.
func (u *Service) planExtension(
	ctx context.Context, tx Repos, in Renew, n renewal, now time.Time,
) (Done, string, error) {
	s := n.was
	o, err := u.driver.PlanRenewal(ctx, tx, s, n.days, n.cost, now)
	if err != nil {
		return Done{}, "", err
	}
	if err := ledger.NewBook(tx, u.ids, now).Hold(ctx, n.wallet, &s, n.cost, n.means, o.Hold(s).Ref, 0); err != nil {
		return Done{}, "", err
	}
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return Done{}, "", err
	}
	n.Session = s
	return Done{View: u.view(n.SessionRead, now), Outcome: ports.InFlight}, o.ID,
		idempotency.Store(ctx, tx, in.AgentID, in.Call, idempotency.RenewalResource(s.ID, o.ID), ports.InFlight, now)
}

// extend drives the order of a renewal, after the transaction that held the
// money, and answers with what is known: Completed if the session is renewed,
// Pending if the outcome is not known yet.
func (u *Service) extend(ctx context.Context, in Renew, s session.Session, order string) (Done, error) {
	state, unknown := u.driver.DriveFor(ctx, s, u.cfg.AnswerWithin)
	ctx = context.WithoutCancel(ctx)
	o := state.Order(order)
	if unknown != nil {
		err := u.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
			o, err = tx.Orders().Get(ctx, order)
			return err
		})
		if err != nil {
			return Done{}, err
		}
	}
	v, err := u.Read(ctx, in.AgentID, in.SessionID)
	if err != nil {
		return Done{}, err
	}
	outcome := ports.Pending
	switch {
	case v.Status.Over():
		outcome = ports.Ended
	case o.Status == procurement.Confirmed:
		outcome = ports.Completed
	case o.Status == procurement.Refused:
		return Done{}, ports.Refusal(o.Class)
	case unknown != nil:
		u.log.Warn("a renewal is not known yet", "session_id", in.SessionID, "order_id", order, "err", unknown)
	}
	resource := idempotency.RenewalResource(in.SessionID, order)
	if err := u.answered(ctx, in.AgentID, in.Call, resource, outcome); err != nil {
		return Done{}, err
	}
	if outcome == ports.Ended {
		return Done{}, endedMeanwhile(v.Session)
	}
	return Done{View: v, Outcome: outcome}, nil
}

// renewalRef distinguishes the hold of a renewal from the others of a session.
func renewalRef(s session.Session) string {
	return ":renew:" + strconv.FormatInt(s.ExpiresAt.Unix(), 10)
}

// planRenewal checks everything that may refuse a renewal: the session before its
// price, the price before the money.
func (u *Service) planRenewal(ctx context.Context, tx Repos, in Renew, now time.Time) (n renewal, err error) {
	if n.SessionRead, err = tx.Sessions().Read(ctx, in.AgentID, in.SessionID); err != nil {
		return n, err
	}
	n.was = n.Session
	if err := n.was.MayRenew(); err != nil {
		return n, err
	}
	product, err := u.catalog.Product(n.was.ProductNo)
	if err != nil {
		return n, err
	}
	var price domain.Money
	if n.days, price, err = renewalDays(in.Days, n.was, product); err != nil {
		return n, err
	}
	if n.Session, err = n.was.Renew(n.days, now); err != nil {
		return n, err
	}
	known, _ := u.catalog.Provider(n.was.Provider)
	var ok bool
	if n.provider, ok = known.(ports.Static); !ok || !n.provider.Capabilities().Renews {
		return n, ports.ErrProvider.Msgf("this provider does not renew; buy a new session")
	}
	if n.was.Renewing() {
		return n, errRenewing
	}
	if pool, local := known.(ports.ExitPool); local && slices.ContainsFunc(n.was.Exits, func(e session.Exit) bool {
		return !e.Ended && !pool.Serves(e.IP)
	}) {
		return n, errAddressAway
	}
	n.cost = billing.IPCost(n.was.Live(), price)
	if in.MaxCost != nil && n.cost > *in.MaxCost {
		return n, ErrPriceMismatch.With("cost", n.cost).With("max_cost", *in.MaxCost)
	}
	b := ledger.NewBook(tx, u.ids, now)
	if n.wallet, err = b.Wallet(ctx, in.AgentID, in.DryRun); err != nil {
		return n, err
	}
	if err := b.Spends(ctx, n.wallet, in.By, n.was.BoughtBy.KeyID, product.No); err != nil {
		return n, err
	}
	if err := tierAllows(ctx, tx, n.wallet, product, u.FundedFrom); err != nil {
		return n, err
	}
	n.means = u.means(product, n.was.Provider)
	// A renewal adds no live session, so their limit does not apply.
	if err := b.MaySpend(ctx, n.wallet, n.was.BoughtBy.KeyID, n.cost); err != nil {
		return n, err
	}
	_, err = n.wallet.Hold(n.cost, n.means)
	return n, err
}

// errAddressAway refuses to take money for an address that serves nothing.
var errAddressAway = ports.ErrProvider.Msgf("an address of this session serves nothing at the moment, so it is not " +
	"renewed; if it does not come back, the session ends and its unused days are given back")

// errRenewing refuses a renewal while another one is on its way.
var errRenewing = session.ErrNotReady.Msgf("a renewal of this session is on its way; try again when its " +
	"expires_at has changed")

// renewalDays returns how many days a renewal adds, and today's price of an IP.
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
