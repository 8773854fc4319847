package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"agentproxy/app/catalog"
	procurementapp "agentproxy/app/procurement"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The bounds of a reconciliation.
const (
	// Every is the age at which RunDue repeats the reconciliation of a provider.
	Every = 24 * time.Hour
	// listTimeout bounds the reading of one provider's list, of which a run has several.
	listTimeout = 40 * time.Second
	callTimeout = 20 * time.Second
	// listedAtMost is how long a list may be.
	listedAtMost = 20_000
	// changedAtMost is how many orders of a list are given up or decided in one run; the
	// next one goes on.
	changedAtMost  = 100
	lookedUpAtOnce = 256
)

// Outcome is what was done about a disposition.
type Outcome string

// Cancelled: it was given up at the provider. Adopted: it is the order now. Remains: the
// provider refused to take it back. Left: it is for the next run, or for the operator.
const (
	Cancelled Outcome = "cancelled"
	Adopted   Outcome = "adopted"
	Remains   Outcome = "remains"
	Left      Outcome = "left"
	// ends: the provider takes it back no more than before, and it runs to its end. Of an
	// order that was delivered that is known.
	ends Outcome = "runs to its end"
)

// Finding is something that a provider has and that no live session uses.
type Finding struct {
	procurement.Delivery
	Disposition procurement.Disposition
	Outcome     Outcome
	OrderID     string // of the service; empty: none is known
	SessionID   string
	Reason      string // why it remains
}

// Report is the result for one provider.
type Report struct {
	Provider string
	Listed   int // what the provider has
	Kept     int // what of it is as it should be
	Findings []Finding
	Err      error // the list could not be read: nothing was compared
}

// Orphans counts what the provider has and the service neither uses nor could give up.
func (r Report) Orphans() (n int) {
	for _, f := range r.Findings {
		if f.Disposition == procurement.Orphan || f.Disposition == procurement.Surplus && f.Outcome != Cancelled {
			n++
		}
	}
	return n
}

// Service compares what each provider lists with the orders of the service. What was
// bought for it and given up is cancelled there, what is an order of unknown outcome is
// adopted, and what no order is known for is reported.
type Service struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	catalog *catalog.Catalog
	desk    *procurementapp.Desk
	calls   ports.CallCounter
	log     *slog.Logger
}

// New returns a Service.
func New(store ports.Store, clock ports.Clock, catalog *catalog.Catalog, desk *procurementapp.Desk,
	calls ports.CallCounter, log *slog.Logger) *Service {
	return &Service{store: narrow(store), clock: clock, catalog: catalog, desk: desk, calls: calls, log: log}
}

// ErrCannotList refuses a provider without a list.
var ErrCannotList = &domain.Error{Kind: domain.Invalid, Code: "CANNOT_LIST",
	Message: "the provider has no list of what was ordered there"}

// RunDue reconciles the providers that were not for Every, the longest ago first. One
// that cannot be read is logged and tried again by the next run.
func (u *Service) RunDue(ctx context.Context) error {
	last, err := u.Last(ctx)
	if err != nil {
		return err
	}
	now := u.clock.Now()
	due := slices.DeleteFunc(u.listers(), func(p ports.Lister) bool { return now.Sub(last[p.Name()].At) < Every })
	slices.SortStableFunc(due, func(a, b ports.Lister) int { return last[a.Name()].At.Compare(last[b.Name()].At) })
	for _, p := range due {
		if ctx.Err() != nil {
			return nil // the rest is the next run's
		}
		r, err := u.reconcile(ctx, p)
		if err != nil {
			return err
		}
		u.report(r)
		if r.Err != nil {
			u.log.Warn("what a provider has could not be compared with its orders", "provider", p.Name(), "err", r.Err)
		}
	}
	return nil
}

// Run reconciles one provider, or all that have a list for an empty name.
func (u *Service) Run(ctx context.Context, provider string) ([]Report, error) {
	list := u.listers()
	if provider != "" {
		if list = slices.DeleteFunc(list, func(p ports.Lister) bool { return p.Name() != provider }); len(list) == 0 {
			if _, known := u.catalog.Provider(provider); !known {
				return nil, domain.InvalidField("provider", "no provider is named %q", provider)
			}
			return nil, ErrCannotList
		}
	}
	var reports []Report
	for _, p := range list {
		r, err := u.reconcile(ctx, p)
		if err != nil {
			return reports, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// Last returns the last complete reconciliation of each provider.
func (u *Service) Last(ctx context.Context) (last map[string]ports.Reconciliation, err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx repos) error {
		last, err = tx.Reconciliations().All(ctx)
		return err
	})
	return last, err
}

// listers returns the providers with a list, by name.
func (u *Service) listers() (list []ports.Lister) {
	for _, p := range u.catalog.Providers() {
		if l, ok := p.(ports.Lister); ok && !p.Capabilities().InProcess {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b ports.Lister) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// reconcile compares one provider. Its error is the store's.
func (u *Service) reconcile(ctx context.Context, p ports.Lister) (Report, error) {
	r := Report{Provider: p.Name()}
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := p.List(bounded)
	u.calls.Count(p, "list", err)
	if err == nil && len(listed) > listedAtMost {
		err = fmt.Errorf("it lists %d orders, and %d are compared at most", len(listed), listedAtMost)
	}
	if err != nil {
		r.Err = err
		return r, nil
	}
	claims, err := u.claims(ctx, p, listed)
	if err != nil {
		return r, err
	}
	changed := 0
	for i, d := range listed {
		o := claims[i].Order
		f := Finding{Delivery: d, Disposition: procurement.Reconcile(d, claims[i]), Outcome: Left, OrderID: o.ID,
			SessionID: o.SessionID}
		if f.Disposition == procurement.Surplus || f.Disposition == procurement.Lost {
			if changed++; changed <= changedAtMost {
				f.Outcome, f.Reason = u.act(ctx, p, f)
			}
		}
		if f.Disposition == procurement.Kept || f.Outcome == ends && o.Ref == d.Ref {
			r.Kept++
			continue
		}
		r.Findings = append(r.Findings, f)
	}
	r.Listed = len(listed)
	return r, u.store.Update(ctx, func(ctx context.Context, tx repos) error {
		return tx.Reconciliations().Put(ctx, ports.Reconciliation{Provider: r.Provider, At: u.clock.Now(), Listed: r.Listed,
			Orphans: r.Orphans()})
	})
}

// act gives up what is surplus, and decides the order that was lost.
func (u *Service) act(ctx context.Context, p ports.Provider, f Finding) (Outcome, string) {
	if f.Disposition == procurement.Lost {
		if _, err := u.desk.Adopt(ctx, f.OrderID, f.Ref); err != nil && !errors.Is(err, procurement.ErrDecided) {
			return Left, err.Error()
		}
		return Adopted, ""
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.Cancel(bounded, f.Ref)
	u.calls.Count(p, "cancel", err)
	switch procurement.ClassOf(err) {
	case "", procurement.NotFound:
		return Cancelled, ""
	case procurement.Unsupported:
		return ends, procurement.ReasonOf(err)
	}
	return Remains, procurement.ReasonOf(err)
}

// report logs what was found, each once a run.
func (u *Service) report(r Report) {
	for _, f := range r.Findings {
		if f.Outcome == Cancelled || f.Outcome == Adopted {
			u.log.Warn("a provider has an order that the service had given up or lost", "provider", r.Provider, "ref", f.Ref,
				"order_id", f.OrderID, "session_id", f.SessionID, "outcome", string(f.Outcome))
		}
	}
	if n := r.Orphans(); n > 0 {
		u.log.Warn("a provider has orders without a record in the service; reconcile its orders to list them",
			"provider", r.Provider, "orphans", n, "listed", r.Listed)
	}
}
