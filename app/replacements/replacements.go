// Package replacements gives static sessions another address in place of one that is not what was sold.
package replacements

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/fulfilment"
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/app/ordering"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Service replaces addresses of static sessions.
type Service struct {
	store       ports.Unit[Repos]
	clock       ports.Clock
	ids         ports.IDs
	catalog     *catalogs.Catalog
	sessions    *sessions.Service
	transitions *sessions.Transitions
	driver      *ordering.Driver
	access      *fulfilment.Service
	hub         *changes.Hub
}

// New returns the use case.
func New(base ports.Base, catalog *catalogs.Catalog, sessions *sessions.Service, transitions *sessions.Transitions,
	driver *ordering.Driver, access *fulfilment.Service, hub *changes.Hub) *Service {
	return &Service{store: narrow(base.Store), clock: base.Clock, ids: base.IDs, catalog: catalog, sessions: sessions,
		transitions: transitions, driver: driver, access: access, hub: hub}
}

// Replace asks for another address in place of one.
type Replace struct {
	AgentID   string
	By        account.Spender
	SessionID string
	IP        netip.Addr
	Fault     procurement.Fault
	Refund    bool          // end the address and refund its unused days if there is no other one
	MaxCost   *domain.Money // nil: none
	Call      idempotency.Call
	DryRun    bool
}

// Done is the answer to a call.
type Done struct {
	View        sessions.View
	Replacement replacement.Replacement
	Quote       *ledger.Quote // a dry run: the Replacement is what it would be, and there is no View
	Replayed    bool
}

// waitFor is how long a call waits for a seller. What takes longer goes on in the background.
const waitFor = 20 * time.Second

// quoteWithin bounds the question to a seller that comes before.
const quoteWithin = 10 * time.Second

// Replace gives a session another address in the same place for the rest of its time, if there is a ground for it, or
// ends the address and refunds its unused days. At a seller the replacement may be pending when it returns.
func (u *Service) Replace(ctx context.Context, in Replace) (Done, error) {
	if !slices.Contains(procurement.Faults, in.Fault) {
		return Done{}, domain.InvalidField("reason", "must be wrong_place, listed, unreachable, blocked or other")
	}
	if in.MaxCost != nil && *in.MaxCost < 0 {
		return Done{}, domain.InvalidField("max_cost", "must be an amount with at most 6 decimals")
	}
	if in.DryRun {
		in.Call = idempotency.Call{}
	}
	offer, err := u.ask(ctx, in)
	if err != nil {
		return Done{}, err
	}
	var done Done
	unit := u.store.Update
	if in.DryRun {
		unit = u.store.View
	}
	err = unit(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		r := run{Service: u, tx: tx, in: in, offer: offer, now: u.clock.Now()}
		done, err = r.run(ctx)
		return err
	})
	if err != nil || in.DryRun {
		return done, err
	}
	if !done.Replayed {
		u.hub.SessionChanged(in.SessionID)
		if done.Replacement.Status == replacement.Pending {
			// What is not known in time is read later: the replacement is pending then.
			_, _ = u.driver.DriveFor(ctx, done.View.Session, waitFor)
		}
	}
	return u.answer(ctx, in, done)
}

// answer reads the session and the replacement as they are now.
func (u *Service) answer(ctx context.Context, in Replace, done Done) (Done, error) {
	ctx = context.WithoutCancel(ctx)
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		list, err := tx.Replacements().Of(ctx, in.SessionID)
		for _, r := range list {
			if r.ID == done.Replacement.ID {
				done.Replacement = r
			}
		}
		return err
	})
	if err != nil {
		return done, err
	}
	done.View, err = u.sessions.Read(ctx, in.AgentID, in.SessionID)
	return done, err
}

// offer is what the source of a session has for an address.
type offer struct {
	local    ports.Provider // its exits are addresses of this host
	replacer ports.Replacer // nil: it replaces nothing
	quote    procurement.Quote
	none     bool // it has no other address
}

// price returns what the source takes for a replacement without a ground; nil if it makes none.
func (o offer) price() *domain.Money {
	if o.replacer == nil {
		return nil
	}
	return &o.quote.Cost
}

// ask asks the source of a session, outside of any unit, whether it has another address and what that costs.
func (u *Service) ask(ctx context.Context, in Replace) (o offer, err error) {
	var s session.Session
	var bought procurement.Order
	repeated := false // it is answered as before, whether its source answers or not
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if _, repeated, err = idempotency.FirstRun(ctx, tx, in.AgentID, in.Call, u.clock.Now()); err != nil || repeated {
			return err
		}
		if s, err = tx.Sessions().Get(ctx, in.AgentID, in.SessionID); err != nil {
			return err
		}
		list, err := tx.Orders().Of(ctx, s.ID)
		bought, _ = fulfilment.Purchased(list)
		return err
	})
	if err != nil {
		return o, err
	}
	if repeated || s.MayReplace() != nil || s.IndexOf(in.IP) < 0 {
		return o, nil // the unit refuses what is not repeated
	}
	if local, is := u.catalog.InProcess(s.Provider); is {
		_, err := ordering.Learn(ctx, u.driver, s)
		return offer{local: local}, err
	}
	known, _ := u.catalog.Provider(s.Provider)
	replacer, is := known.(ports.Replacer)
	if !is || bought.Ref == "" {
		return offer{none: true}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, quoteWithin)
	defer cancel()
	o.replacer = replacer
	o.quote, err = replacer.QuoteReplacement(bounded, bought.Ref, procurement.Replacement{Addr: in.IP, Fault: in.Fault,
		Location: s.Location})
	switch class := procurement.ClassOf(err); class {
	case "":
		o.none = o.quote.Stock == procurement.StockNo
	case procurement.Unsupported:
		return offer{none: true}, nil
	case procurement.OutOfStock:
		o.none = true
	default:
		return o, ports.Refusal(procurement.ProvenClass(err))
	}
	return o, nil
}

// run is the unit of one replacement.
type run struct {
	*Service
	tx    Repos
	in    Replace
	offer offer
	now   time.Time

	session session.Session
	book    ledger.Book
	wallet  billing.Wallet
	made    replacement.Replacement
}

func (r *run) run(ctx context.Context) (done Done, err error) {
	prev, found, err := idempotency.FirstRun(ctx, r.tx, r.in.AgentID, r.in.Call, r.now)
	if err != nil {
		return done, err
	}
	if found {
		_, id := idempotency.CutResource(prev.Resource)
		return Done{Replacement: replacement.Replacement{ID: id}, Replayed: true}, nil
	}
	if err := r.plan(ctx); err != nil {
		return done, err
	}
	if r.in.DryRun {
		err := r.try(ctx)
		q := ledger.QuoteOf(r.wallet, r.made.Fee)
		q.BalanceAfter += r.made.Refund
		return Done{Quote: q, Replacement: r.made}, err
	}
	if err := r.charge(ctx); err != nil {
		return done, err
	}
	if err := r.make(ctx); err != nil {
		return done, err
	}
	if err := r.tx.Replacements().Put(ctx, r.made); err != nil {
		return done, err
	}
	done.View.Session, done.Replacement = r.session, r.made
	resource := idempotency.RenewalResource(r.session.ID, r.made.ID)
	return done, idempotency.Store(ctx, r.tx, r.in.AgentID, r.in.Call, resource, ports.Completed, r.now)
}

// plan checks everything that may refuse the replacement: the session, the address, the ground, the price.
func (r *run) plan(ctx context.Context) (err error) {
	if err := r.tx.Sessions().Lock(ctx, []string{r.in.SessionID}); err != nil {
		return err
	}
	if r.session, err = r.tx.Sessions().Get(ctx, r.in.AgentID, r.in.SessionID); err != nil {
		return err
	}
	s := r.session
	if err := s.MayReplace(); err != nil {
		return err
	}
	if !r.now.Before(s.ExpiresAt) {
		return session.ErrOver.Msgf("the session has reached its end; create a new one")
	}
	index := s.IndexOf(r.in.IP)
	if index < 0 {
		return domain.InvalidField("ip", "is no address that this session has now; read its ip_list")
	}
	if s.Renewing() {
		return session.ErrNotReady.Msgf("a renewal of this session is on its way; try again when its expires_at has changed")
	}
	ground, err := r.ground(ctx, index)
	if err != nil {
		return err
	}
	r.book = ledger.NewBook(r.tx, r.ids, r.now)
	if r.wallet, err = r.book.Wallet(ctx, r.in.AgentID, r.in.DryRun); err != nil {
		return err
	}
	if err := r.book.Spends(ctx, r.wallet, r.in.By, s.BoughtBy.KeyID, s.ProductNo); err != nil {
		return err
	}
	r.made = replacement.Replacement{ID: r.ids.New(replacement.IDPrefix), AgentID: s.AgentID, SessionID: s.ID,
		Provider: s.Provider, Country: s.Location.Country, Index: index, Old: r.in.IP, Fault: r.in.Fault, Ground: ground,
		Status: replacement.Pending, At: r.now}
	if !ground.Free() {
		r.made.Fee = *r.offer.price()
	}
	if r.in.MaxCost != nil && r.made.Fee > *r.in.MaxCost {
		return sessions.ErrPriceMismatch.With("cost", r.made.Fee).With("max_cost", *r.in.MaxCost)
	}
	return nil
}

// ground returns on which ground the address is replaced.
func (r *run) ground(ctx context.Context, index int) (replacement.Ground, error) {
	list, err := r.tx.Replacements().Of(ctx, r.session.ID)
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(b replacement.Replacement) bool { return b.Index != index })
	c := replacement.Case{Fault: r.in.Fault, ActivatedAt: r.session.ActivatedAt, Before: list, Price: r.offer.price()}
	if c.Measured, c.Failures, err = sessions.MeasuredAt(ctx, r.tx, r.session, index); err != nil {
		return "", err
	}
	return c.Ground(r.now)
}

// charge takes the fee. It is kept from what unused days are reckoned of, and given back if the seller refuses.
func (r *run) charge(ctx context.Context) error {
	if r.made.Fee == 0 {
		return nil
	}
	product, err := r.catalog.Product(r.session.ProductNo)
	if err != nil {
		return err
	}
	_, own := r.catalog.InProcess(r.session.Provider)
	means := product.FundingSource(r.session.Provider, !own)
	ref := ":" + r.made.ID
	if err := r.book.Hold(ctx, r.wallet, &r.session, r.made.Fee, means, ref, 0); err != nil {
		return err
	}
	r.session.Money.Kept += r.made.Fee
	r.made.Kept = r.made.Fee
	return r.book.Charge(ctx, &r.session, r.made.Fee)
}

// make replaces the address, has its seller asked, or ends it. It stores the session.
func (r *run) make(ctx context.Context) error {
	if r.offer.local == nil && !r.offer.none {
		o, err := ordering.Exchanges{Driver: r.driver}.Plan(ctx, r.tx, r.session, r.now)
		if err != nil {
			return err
		}
		r.made.OrderID = o.ID
		return r.tx.Sessions().Put(ctx, r.session)
	}
	by, err := r.another(ctx)
	if err != nil {
		return err
	}
	if !by.IsValid() {
		return r.endAddress(ctx)
	}
	if r.session, err = r.session.ReplaceExit(r.made.Index, by); err != nil {
		return err
	}
	if r.made, err = r.made.Decide(by, r.now); err != nil {
		return err
	}
	return r.put(ctx, eventlog.Replaced)
}

// put stores the session with the addresses that it has now, and lists the event.
func (r *run) put(ctx context.Context, event string) error {
	s := r.session
	if err := r.tx.Addresses().Free(ctx, s.ID); err != nil {
		return err
	}
	if err := r.tx.Addresses().Take(ctx, s.Provider, s.ID, session.Addresses(s.Exits)); err != nil {
		return err
	}
	if err := notify.LogEvent(ctx, r.tx, r.ids, s.ID, event, string(r.made.Fault), r.now); err != nil {
		return err
	}
	return r.tx.Sessions().Put(ctx, s)
}

// another returns another address of this host in the same place; an invalid one if there is none and the unused
// days are to be refunded instead.
func (r *run) another(ctx context.Context) (by netip.Addr, err error) {
	if r.offer.local != nil {
		by, err = ordering.Exchanges{Driver: r.driver}.Another(ctx, r.tx, r.session, r.now)
		if err == nil {
			return by, nil
		}
	}
	switch {
	case err != nil && !ports.NothingBought(err):
		return by, err
	case !r.in.Refund || !r.made.Ground.Free():
		e := catalog.ErrOutOfStock.Msgf("there is no other address in this place")
		if r.made.Ground.Free() {
			e = e.Msgf("there is no other address in this place; with refund: true this one ends and its unused days are " +
				"given back")
		}
		return by, e
	}
	direct, err := r.access.Direct(ctx, r.session)
	if err == nil && direct != nil {
		err = catalog.ErrOutOfStock.Msgf("there is no other address in this place, and this one goes on at its seller")
	}
	return netip.Addr{}, err
}

// endAddress ends the address and refunds its unused days. With the last address the session ends.
func (r *run) endAddress(ctx context.Context) (err error) {
	var refund domain.Money
	if r.session, refund, r.made.Kept, err = r.session.EndExit(r.made.Index, r.now); err != nil {
		return err
	}
	r.made.Status, r.made.DecidedAt, r.made.EndsAt = replacement.Ended, r.now, r.session.ExpiresAt
	r.made.Refund = refund
	err = r.book.Refund(ctx, &r.session, refund, "refund:"+r.session.ID+":"+r.made.ID,
		"unused days of an address of "+r.session.ProductNo)
	if err != nil {
		return err
	}
	if err := r.put(ctx, eventlog.AddressEnded); err != nil || r.session.Live() > 0 {
		return err
	}
	r.session, err = r.transitions.Terminate(ctx, r.tx, r.session, session.AgentRequest, r.now)
	return err
}

// try sets what a dry run would do.
func (r *run) try(ctx context.Context) error {
	if r.made.Fee > 0 {
		if err := r.book.MaySpend(ctx, r.wallet, r.session.BoughtBy.KeyID, r.made.Fee); err != nil {
			return err
		}
	}
	if r.offer.local == nil && !r.offer.none {
		return nil
	}
	by, err := r.another(ctx)
	if err != nil {
		return err
	}
	r.made.Status = replacement.Done
	if by.IsValid() {
		return nil
	}
	r.made.Status = replacement.Ended
	_, r.made.Refund, r.made.Kept, err = r.session.EndExit(r.made.Index, r.now)
	return err
}
