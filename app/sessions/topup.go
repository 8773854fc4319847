package sessions

import (
	"context"
	"errors"
	"strconv"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// TopUp asks for more traffic of a dynamic session.
type TopUp struct {
	AgentID   string
	By        account.Spender
	SessionID string
	Bytes     *int64        // nil: none was given, which is refused
	MaxCost   *domain.Money // nil: none
	Call      idempotency.Call
	DryRun    bool
}

// errFixedTraffic refuses what the seller of a session would have to take part in.
var errFixedTraffic = domain.ErrInvalid.Msgf("the seller of this session sold it a fixed amount of traffic; " +
	"buy another session")

// TopUp adds traffic to an active session at today's price. Its address, its exit and its id stay.
func (u *Service) TopUp(ctx context.Context, in TopUp) (Done, error) {
	unit := u.store.Update
	if in.DryRun {
		unit, in.Call = u.store.View, idempotency.Call{}
	}
	var done Done
	err := unit(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		prev, replay, err := u.replayed(ctx, tx, in.AgentID, in.Call, now)
		if err != nil || replay {
			done = prev
			return err
		}
		done, err = topUps{u}.topUp(ctx, tx, in, now)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if !in.DryRun && !done.Replayed {
		u.hub.SessionChanged(in.SessionID)
	}
	done.View.Direct, err = u.access.Direct(ctx, done.View.Session)
	return done, err
}

// topUps is the steps of an addition to the traffic of a session.
type topUps struct{ *Service }

func (t topUps) topUp(ctx context.Context, tx Repos, in TopUp, now time.Time) (Done, error) {
	// The agent is locked before its session, in the order of those that disable accounts.
	agent, err := tx.Agents().Get(ctx, in.AgentID)
	if err != nil {
		return Done{}, err
	}
	r, err := tx.Sessions().Read(ctx, in.AgentID, in.SessionID)
	switch {
	case err != nil:
		return Done{}, err
	case agent.Status != account.Active:
		return Done{}, account.ErrDisabled
	case in.Bytes == nil:
		return Done{}, domain.InvalidField("traffic_gb", "is required: how many GB to add")
	case in.MaxCost != nil && *in.MaxCost <= 0:
		return Done{}, domain.InvalidField("max_cost", "must be an amount above 0 with at most 6 decimals")
	}
	a, err := t.planAddition(r.Session, *in.Bytes)
	if err != nil {
		return Done{}, err
	}
	if in.MaxCost != nil && a.cost > *in.MaxCost {
		return Done{}, ErrPriceMismatch.With("cost", a.cost).With("max_cost", *in.MaxCost)
	}
	w, err := t.payable(ctx, tx, a, in.By, in.DryRun, now)
	if err != nil {
		return Done{}, err
	}
	if in.DryRun {
		return Done{Quote: ledger.QuoteOf(w, a.cost), Outcome: ports.Completed}, nil
	}
	if r.Session, err = t.add(ctx, tx, w, a, false, now); err != nil {
		return Done{}, err
	}
	r.Usage.Limit = r.Session.Bytes
	return Done{View: t.view(r, now), Outcome: ports.Completed},
		idempotency.Store(ctx, tx, in.AgentID, in.Call, r.ID, ports.Completed, now)
}

// addition is traffic that a session and its product allow to add.
type addition struct {
	session session.Session // with it
	product catalog.Product
	bytes   int64
	price   domain.Money
	cost    domain.Money
	means   billing.FundingSource // that may pay
}

// planAddition checks what needs no store: the session, the product and its seller's price.
func (t topUps) planAddition(s session.Session, bytes int64) (a addition, err error) {
	if err := s.MayTopUp(); err != nil {
		return a, err
	}
	if err := session.CheckAddition(bytes); err != nil {
		return a, err
	}
	// Others sold the session's own number of bytes, which they cap or bill, and sell no more of it.
	if _, ok := t.catalog.InProcess(s.Provider); !ok {
		return a, errFixedTraffic
	}
	if a.product, err = t.catalog.Product(s.ProductNo); err != nil {
		return a, err
	}
	if err := a.product.CheckTopUp(bytes, "traffic_gb"); err != nil {
		return a, err
	}
	a.bytes, a.price = bytes, a.product.Price
	a.cost, a.means = billing.TrafficHold(bytes, a.price), t.means(a.product, s.Provider)
	from := a.product.Source(s.Provider)
	asked := s
	asked.Bytes = bytes
	ceiling := from.MaxCost(from.CostOf(asked, 0), a.cost)
	if !a.product.Available || from.CostOf(asked, 0) > ceiling {
		return a, catalog.ErrOutOfStock
	}
	a.session, err = s.TopUp(bytes, a.price)
	return a, err
}

// payable returns the wallet that pays for an addition, and refuses what a purchase would refuse.
func (t topUps) payable(
	ctx context.Context, tx Repos, a addition, by account.Spender, dryRun bool, now time.Time,
) (billing.Wallet, error) {
	b, buyer := ledger.NewBook(tx, t.ids, now), a.session.BoughtBy.KeyID
	w, err := b.Wallet(ctx, a.session.AgentID, dryRun)
	if err != nil {
		return w, err
	}
	if err := b.Spends(ctx, w, by, buyer, a.product.No); err != nil {
		return w, err
	}
	if err := tierAllows(ctx, tx, w, a.product, t.FundedFrom); err != nil {
		return w, err
	}
	if err := b.MaySpend(ctx, w, buyer, a.cost); err != nil {
		return w, err
	}
	_, err = w.Hold(a.cost, a.means)
	return w, err
}

// add holds the cost of an addition and stores the session.
func (t topUps) add(
	ctx context.Context, tx Repos, w billing.Wallet, a addition, auto bool, now time.Time,
) (session.Session, error) {
	s := a.session
	no := strconv.Itoa(s.TopUps.No)
	if err := ledger.NewBook(tx, t.ids, now).Hold(ctx, w, &s, a.cost, a.means, ":traffic:"+no, 0); err != nil {
		return s, err
	}
	s = s.HeldForTopUp(a.cost, auto, now)
	run, start := s.LastRun()
	err := tx.Traffic().AddTopUp(ctx, ports.TopUp{AgentID: s.AgentID, SessionID: s.ID, No: s.TopUps.No, Run: run,
		Start: start, Bytes: a.bytes, Price: a.price, At: now})
	if err != nil {
		return s, err
	}
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return s, err
	}
	by, event := "agent", eventlog.Event{ID: t.ids.New(eventlog.IDPrefix), At: now, Source: eventlog.Agent,
		Type: eventlog.ToppedUp, LatencyMS: -1}
	if auto {
		by, event.Source = "auto_top_up", eventlog.Service
	}
	if err := tx.Events().Append(ctx, s.ID, []eventlog.Event{event}); err != nil {
		return s, err
	}
	return s, notify.SessionChanged(ctx, tx, t.ids, now, webhook.SessionToppedUp, s, "by", by,
		"added_gb", domain.FormatDecimal(a.bytes, 9), "cost", a.cost.String())
}

// autoTopUp sets what a session buys by itself; nil is nothing.
func (t topUps) autoTopUp(s session.Session, a *session.AutoTopUp) (session.Session, error) {
	if a == nil {
		return s.WithAutoTopUp(session.AutoTopUp{}), nil
	}
	if s.Type != session.Dynamic {
		return s, session.ErrNotMetered
	}
	if _, ok := t.catalog.InProcess(s.Provider); !ok {
		return s, errFixedTraffic
	}
	product, err := t.catalog.Product(s.ProductNo)
	if err != nil {
		return s, err
	}
	return s.WithAutoTopUp(*a), product.CheckTopUp(a.Bytes, "auto_top_up.add_gb")
}

// AutoTopUp adds the traffic that a session buys by itself, in the unit that books what was used. The
// caller has checked that it is due. A refusal changes only the session's record of it, and the
// agent is notified of it once; any other error fails the unit.
func (u *Service) AutoTopUp(ctx context.Context, tx Repos, s session.Session, now time.Time) (session.Session, error) {
	t := topUps{u}
	a, err := t.planAddition(s, s.TopUps.Auto.Bytes)
	if err == nil {
		err = s.MayAutoTopUp(a.price, now)
	}
	if err == nil {
		err = hasBuyer(ctx, tx, s, now)
	}
	if err == nil {
		var w billing.Wallet
		if w, err = t.payable(ctx, tx, a, account.Spender{}, false, now); err == nil {
			return t.add(ctx, tx, w, a, true, now)
		}
	}
	refusal, ok := errors.AsType[*domain.Error](err)
	if !ok || refusal.Kind == domain.Internal || errors.Is(err, domain.ErrUnavailable) {
		return s, err
	}
	s, news := s.AutoTopUpRefused(refusal.Code, now)
	if err := tx.Sessions().Put(ctx, s); err != nil || !news {
		return s, err
	}
	if err := notify.LogEvent(ctx, tx, u.ids, s.ID, eventlog.TopUpFailed, refusal.Code, now); err != nil {
		return s, err
	}
	return s, notify.SessionChanged(ctx, tx, u.ids, now, webhook.SessionTopUpFailed, s, "code", refusal.Code)
}

// hasBuyer refuses an addition by itself to a session whose key has ended.
func hasBuyer(ctx context.Context, tx Repos, s session.Session, now time.Time) error {
	key := s.BoughtBy.KeyID
	if key == "" || key == account.FirstKeyID(s.AgentID) {
		return nil
	}
	further, err := tx.Keys().Further(ctx, s.AgentID)
	if err != nil {
		return err
	}
	return account.LiveBuyer(further, key, now)
}
