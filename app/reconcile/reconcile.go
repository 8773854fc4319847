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
func (s *Service) RunDue(ctx context.Context) error {
	last, err := s.Last(ctx)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	due := slices.DeleteFunc(s.listers(), func(p ports.Lister) bool { return now.Sub(last[p.Name()].At) < Every })
	slices.SortStableFunc(due, func(a, b ports.Lister) int { return last[a.Name()].At.Compare(last[b.Name()].At) })
	for _, p := range due {
		if ctx.Err() != nil {
			return nil // the rest is the next run's
		}
		r, err := s.reconcile(ctx, p)
		if err != nil {
			return err
		}
		s.report(r)
		if r.Err != nil {
			s.log.Warn("what a provider has could not be compared with its orders", "provider", p.Name(), "err", r.Err)
		}
	}
	return nil
}

// Run reconciles one provider, or all that have a list for an empty name.
func (s *Service) Run(ctx context.Context, provider string) ([]Report, error) {
	list := s.listers()
	if provider != "" {
		if list = slices.DeleteFunc(list, func(p ports.Lister) bool { return p.Name() != provider }); len(list) == 0 {
			if _, known := s.catalog.Provider(provider); !known {
				return nil, domain.InvalidField("provider", "no provider is named %q", provider)
			}
			return nil, ErrCannotList
		}
	}
	var reports []Report
	for _, p := range list {
		r, err := s.reconcile(ctx, p)
		if err != nil {
			return reports, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// Last returns the last complete reconciliation of each provider.
func (s *Service) Last(ctx context.Context) (last map[string]ports.Reconciliation, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		last, err = tx.Reconciliations().All(ctx)
		return err
	})
	return last, err
}

// listers returns the providers with a list, by name.
func (s *Service) listers() (list []ports.Lister) {
	for _, p := range s.catalog.Providers() {
		if l, ok := p.(ports.Lister); ok && !p.Capabilities().InProcess {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b ports.Lister) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// reconcile compares one provider. Its error is the store's.
func (s *Service) reconcile(ctx context.Context, p ports.Lister) (Report, error) {
	r := Report{Provider: p.Name()}
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	listed, err := p.List(bounded)
	s.calls.Count(p, "list", err)
	if err == nil && len(listed) > listedAtMost {
		err = fmt.Errorf("it lists %d orders, and %d are compared at most", len(listed), listedAtMost)
	}
	if err != nil {
		r.Err = err
		return r, nil
	}
	claims, err := s.claims(ctx, p, listed)
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
				f.Outcome, f.Reason = s.act(ctx, p, f)
			}
		}
		if f.Disposition == procurement.Kept || f.Outcome == ends && o.Ref == d.Ref {
			r.Kept++
			continue
		}
		r.Findings = append(r.Findings, f)
	}
	r.Listed = len(listed)
	return r, s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Reconciliations().Put(ctx, ports.Reconciliation{Provider: r.Provider, At: s.clock.Now(), Listed: r.Listed,
			Orphans: r.Orphans()})
	})
}

// act gives up what is surplus, and decides the order that was lost.
func (s *Service) act(ctx context.Context, p ports.Provider, f Finding) (Outcome, string) {
	if f.Disposition == procurement.Lost {
		if _, err := s.desk.Adopt(ctx, f.OrderID, f.Ref); err != nil && !errors.Is(err, procurement.ErrDecided) {
			return Left, err.Error()
		}
		return Adopted, ""
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.Cancel(bounded, f.Ref)
	s.calls.Count(p, "cancel", err)
	switch procurement.ClassOf(err) {
	case "", procurement.NotFound:
		return Cancelled, ""
	case procurement.Unsupported:
		return ends, procurement.ReasonOf(err)
	}
	return Remains, procurement.ReasonOf(err)
}

// report logs what was found, each once a run.
func (s *Service) report(r Report) {
	for _, f := range r.Findings {
		if f.Outcome == Cancelled || f.Outcome == Adopted {
			s.log.Warn("a provider has an order that the service had given up or lost", "provider", r.Provider, "ref", f.Ref,
				"order_id", f.OrderID, "session_id", f.SessionID, "outcome", string(f.Outcome))
		}
	}
	if n := r.Orphans(); n > 0 {
		s.log.Warn("a provider has orders without a record in the service; reconcile its orders to list them",
			"provider", r.Provider, "orphans", n, "listed", r.Listed)
	}
}
