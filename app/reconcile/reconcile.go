// Package reconcile compares what providers have with what the service bought of them:
// what is not shown, and what no order is known for.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

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
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
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
	return r, u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
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
