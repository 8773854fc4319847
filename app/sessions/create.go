package sessions

import (
	"cmp"
	"context"
	"errors"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// ErrPriceMismatch refuses a cost above the caller's max_cost.
var ErrPriceMismatch = &domain.Error{Kind: domain.Conflict, Code: "PRICE_MISMATCH",
	Message: "the cost is above max_cost; raise it, buy less, or choose another product"}

// Create asks for a session.
type Create struct {
	AgentID string
	By      account.Spender
	Form    session.CreateRequest
	Policy  *policy.Own // the rules about its targets; nil for none
	Require exit.Rule   // that its exits meet
	Call    idempotency.Call
	DryRun  bool
}

// check checks what no product and no source of facts decides.
func (in *Create) check() (session.Spec, error) {
	spec, err := in.Form.Check()
	if err == nil && spec.Existing && !in.Require.Empty() {
		err = domain.InvalidField("require", "belongs to a session that is bought; rotate a live one with it")
	}
	if err != nil || in.Policy == nil {
		return spec, err
	}
	if spec.Existing {
		return spec, domain.InvalidField("policy", "belongs to a session that is bought; change that of "+
			"a live one on the session itself")
	}
	own := in.Policy.WithMode()
	in.Policy = &own
	return spec, own.Check("policy.")
}

// purchase is a create call that passed every check that needs no store, and what
// follows from it.
type purchase struct {
	Create
	spec    session.Spec
	product catalog.Product
	sources []procurement.Source // who may deliver, the best first
	turn    *ordering.Turn       // of a seller, for a rule
	price   domain.Money
	cost    domain.Money
}

// plan checks a create call against the catalogue.
func (u *Service) plan(in Create, spec session.Spec) (p purchase, err error) {
	p = purchase{Create: in, spec: spec}
	if p.product, err = u.catalog.Product(spec.ProductNo); err != nil {
		return p, err
	}
	if p.spec, err = p.product.Terms().Check(spec); err != nil {
		return p, err
	}
	p.price, p.cost = priceOf(p.product, p.spec)
	if p.spec.MaxCost > 0 && p.cost > p.spec.MaxCost && !p.spec.Existing {
		return p, ErrPriceMismatch.With("cost", p.cost).With("max_cost", p.spec.MaxCost)
	}
	if p.spec.Existing {
		return p, nil
	}
	if p.spec.AutoTopUp.Bytes > 0 {
		if err := p.product.CheckTopUp(p.spec.AutoTopUp.Bytes, "auto_top_up.add_gb"); err != nil {
			return p, err
		}
	}
	p.sources = u.catalog.Sources(p.product, p.spec.Location, p.spec.Days)
	if !p.product.Available || len(p.sources) == 0 {
		return p, catalog.ErrOutOfStock
	}
	if _, inProcess := u.catalog.InProcess(p.sources[0].Provider); p.spec.AutoTopUp.Bytes > 0 && !inProcess {
		return p, domain.InvalidField("auto_top_up", "this product's seller sells a fixed amount of traffic; leave it out")
	}
	return p, nil
}

// priceOf returns the unit price and the cost of a purchase.
func priceOf(p catalog.Product, s session.Spec) (price, cost domain.Money) {
	if p.Type == session.Dynamic {
		return p.Price, billing.TrafficHold(s.Bytes, p.Price)
	}
	price, _ = p.PriceFor(s.Days)
	return price, billing.IPCost(s.Quantity, price)
}

// Create buys a session, or attaches to a live one. A product that is delivered
// at once is active in the answer; any other is creating, and a job stored in
// the same unit goes on with it.
func (u *Service) Create(ctx context.Context, in Create) (Done, error) {
	spec, err := in.check()
	if err != nil {
		return Done{}, err
	}
	var id string
	if !in.DryRun {
		id = u.ids.New(session.IDPrefix)
	}
	turn, done, err := chooseFor(ctx, u, in, spec, id)
	switch {
	case err != nil || done.Replayed:
		return done, err
	case in.DryRun:
		return u.quoteCreate(ctx, in, spec)
	}
	var p purchase
	reads := ports.ReadSet{Agent: in.AgentID, Money: true, Path: in.Call.Path, Key: in.Call.Key}
	err = u.store.Update(ctx, reads, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		prev, replay, err := u.replayed(ctx, tx, in.AgentID, in.Call, now)
		if err != nil || replay {
			done = prev
			return err
		}
		if p, err = u.plan(in, spec); err != nil {
			return err
		}
		if p.spec.Existing {
			done, err = u.attach(ctx, tx, p, now)
			return err
		}
		p.turn = turn
		done, err = u.buy(ctx, tx, p, id, now)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	if done.Outcome == ports.InFlight {
		return u.deliver(ctx, p, done)
	}
	done.View.Direct, err = u.access.Direct(ctx, done.View.Session)
	return done, err
}

// deliver drives the order of a session, after the transaction that held the
// money. A session that is still creating then is delivered in the background.
func (u *Service) deliver(ctx context.Context, p purchase, held Done) (Done, error) {
	v := held.View
	state, unknown := u.driver.DriveFor(ctx, v.Session, u.cfg.AnswerWithin)
	ctx = context.WithoutCancel(ctx)
	var err error
	if unknown != nil { // the answer is what is stored
		v, err = u.Read(ctx, p.AgentID, v.ID)
	} else {
		v.Session = state.Session
		v = u.view(v.SessionRead, u.clock.Now())
		v.Direct, err = u.access.Direct(ctx, v.Session)
	}
	if err != nil {
		return Done{}, errors.Join(err, unknown)
	}
	switch {
	case v.Status == session.Creating:
		return Done{View: v, Outcome: ports.Pending}, u.answered(ctx, p.AgentID, p.Call, v.ID, ports.Pending)
	case v.Status == session.Failed:
		return Done{}, failureError(v.Failure).With("session_id", v.ID)
	case v.Status.Over():
		err := u.answered(ctx, p.AgentID, p.Call, v.ID, ports.Ended)
		return Done{}, cmp.Or(err, endedMeanwhile(v.Session))
	}
	return Done{View: v, Outcome: ports.Created}, nil
}

// failureError returns the refusal that a stored failure represents.
func failureError(f session.Failure) *domain.Error {
	for _, e := range []*domain.Error{ports.ErrTimeout, catalog.ErrOutOfStock, exit.ErrNotMet} {
		if e.Code == f.Code {
			return e
		}
	}
	return ports.ErrProvider
}

// quoteCreate validates everything and changes nothing.
func (u *Service) quoteCreate(ctx context.Context, in Create, spec session.Spec) (Done, error) {
	p, err := u.plan(in, spec)
	if err != nil {
		return Done{}, err
	}
	var w billing.Wallet
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if p.spec.Existing {
			p.cost = 0
			if _, err := tx.Sessions().Newest(ctx, in.AgentID, in.By.OwnKey(), p.product.No); err != nil {
				return noneToAttach(err)
			}
		}
		now := u.clock.Now()
		w, err = ledger.NewBook(tx, u.ids, now).Wallet(ctx, in.AgentID, true)
		if err != nil || p.spec.Existing {
			return err
		}
		return u.affordable(ctx, tx, w, p, now)
	})
	if err != nil {
		return Done{}, err
	}
	return Done{Quote: ledger.QuoteOf(w, p.cost), Outcome: ports.Completed}, nil
}

// affordable refuses what a purchase would refuse.
func (u *Service) affordable(ctx context.Context, tx Repos, w billing.Wallet, p purchase, now time.Time) error {
	if err := tierAllows(ctx, tx, w, p.product, u.FundedFrom); err != nil {
		return err
	}
	b := ledger.NewBook(tx, u.ids, now)
	if err := b.Spends(ctx, w, p.By, p.By.KeyID, p.product.No); err != nil {
		return err
	}
	if u.cfg.Limit > 0 && w.LiveSessions >= u.cfg.Limit {
		return session.ErrLimit.With("limit", u.cfg.Limit)
	}
	live, most, err := b.LiveOf(ctx, w, p.By.KeyID)
	if err != nil {
		return err
	}
	if most > 0 && live >= most {
		return session.ErrLimit.With("limit", most).With("scope", "key")
	}
	if err := b.MaySpend(ctx, w, p.By.KeyID, p.cost); err != nil {
		return err
	}
	_, err = w.Hold(p.cost, u.means(p.product, p.sources[0].Provider))
	return err
}

// tierAllows refuses a product to an account of a lower tier. It locks no agent: an addition holds the locks of
// its session and its wallet already.
func tierAllows(
	ctx context.Context, tx Repos, w billing.Wallet, p catalog.Product, funding account.Funding,
) error {
	if p.MinTier == "" || p.MinTier == account.TrialTier {
		return nil
	}
	agent, err := tx.Agents().Peek(ctx, w.AgentID)
	if err != nil {
		return err
	}
	return agent.Tier(w.Credited(), funding).Require(p.MinTier)
}

// means returns what may pay for a delivery of a product by a provider.
func (u *Service) means(p catalog.Product, provider string) billing.FundingSource {
	_, own := u.catalog.InProcess(provider)
	return p.FundingSource(provider, !own)
}

// attach answers with the agent's newest live session of the product.
func (u *Service) attach(ctx context.Context, tx Repos, p purchase, now time.Time) (Done, error) {
	s, err := tx.Sessions().Newest(ctx, p.AgentID, p.By.OwnKey(), p.product.No)
	if err != nil {
		return Done{}, noneToAttach(err)
	}
	r, err := tx.Sessions().Read(ctx, p.AgentID, s.ID)
	return Done{View: u.view(r, now), Outcome: ports.Completed}, err
}

func noneToAttach(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return catalog.ErrOutOfStock.Msgf("no live session of this product to attach to; use provisioning_mode purchase")
	}
	return err
}

// buy holds the cost and stores the session, active when the provider can
// deliver inside this unit.
func (u *Service) buy(ctx context.Context, tx Repos, p purchase, id string, now time.Time) (Done, error) {
	// Another process may have disabled the account since the request was
	// authenticated: a session that was bought now would never be ended.
	agent, err := tx.Agents().Get(ctx, p.AgentID)
	if err != nil {
		return Done{}, err
	}
	if agent.Status != account.Active {
		return Done{}, account.ErrDisabled
	}
	b := ledger.NewBook(tx, u.ids, now)
	w, err := b.Wallet(ctx, p.AgentID, false)
	if err != nil {
		return Done{}, err
	}
	if err := u.affordable(ctx, tx, w, p, now); err != nil {
		return Done{}, err
	}
	from := p.sources[0]
	_, inProcess := u.catalog.InProcess(from.Provider)
	s := session.Session{ID: id, AgentID: p.AgentID, Type: p.spec.Type, Status: session.Creating,
		BoughtBy:  session.Buyer{KeyID: p.By.KeyID, Name: p.By.Name},
		ProductNo: p.product.No, Provider: from.Provider, Quantity: p.spec.Quantity, Days: p.spec.Days,
		Bytes: p.spec.Bytes, FairUse: p.product.FairUseOf(p.spec.Quantity, p.spec.Days), Price: p.price,
		Protocol: p.spec.Protocol, Location: p.spec.Location, Rotation: p.spec.Rotation, Labels: p.spec.Labels,
		AllowedIPs: p.spec.AllowedIPs, Require: p.Require,
		TopUps: session.TopUps{Auto: p.spec.AutoTopUp}, CreatedAt: now}
	if err := b.Hold(ctx, w, &s, p.cost, u.means(p.product, from.Provider), "", +1); err != nil {
		return Done{}, err
	}
	outcome := ports.Pending
	switch {
	case p.product.Async:
		err = tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DriveOrdersJob, SessionID: id}, now)
	case inProcess:
		outcome = ports.Created
		s, err = u.driver.Deliver(ctx, tx, s, from, p.turn, now)
	default:
		outcome = ports.InFlight // the order is driven when it is due, should this process die
	}
	if err != nil {
		return Done{}, err
	}
	if err := tx.Sessions().Insert(ctx, s); err != nil {
		return Done{}, err
	}
	if p.Policy != nil {
		if err := tx.Policies().Put(ctx, s.ID, *p.Policy); err != nil {
			return Done{}, err
		}
	}
	if !inProcess {
		if err := u.driver.Plan(ctx, tx, s, from, now); err != nil {
			return Done{}, err
		}
	}
	if err := idempotency.Store(ctx, tx, p.AgentID, p.Call, id, outcome, now); err != nil {
		return Done{}, err
	}
	r := ports.SessionRead{Session: s, Usage: traffic.Usage{Limit: s.Limit()}, Health: new(health.State)}
	return Done{View: u.view(r, now), Outcome: outcome}, nil
}
