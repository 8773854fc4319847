package reconcile

import (
	"cmp"
	"context"
	"slices"

	"agentproxy/app/catalogs"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// countedAtMost is how many sessions of a provider are compared, the newest of those that live.
const countedAtMost = 500

// metered is an order of traffic that passes through the gateway.
type metered struct{ ref, sessionID, product string }

// CountDue compares, for each provider whose counters were not compared for Every, what they
// show of live sessions with what is charged for these. A provider without a counter is left
// out; so are direct sessions, which are charged by it.
func (s *Service) CountDue(ctx context.Context) error {
	last, err := s.Counted(ctx)
	if err != nil {
		return err
	}
	var due []ports.Dynamic
	for _, p := range s.catalog.Providers() {
		d, ok := p.(ports.Dynamic)
		if ok && !p.Capabilities().InProcess && s.clock.Now().Sub(last[p.Name()].At) >= Every {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b ports.Dynamic) int {
		return cmp.Or(last[a.Name()].At.Compare(last[b.Name()].At), cmp.Compare(a.Name(), b.Name()))
	})
	for _, p := range due {
		if ctx.Err() != nil {
			return nil // the rest is the next run's
		}
		if err := s.compareUsage(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Counted returns the last comparison of each provider.
func (s *Service) Counted(ctx context.Context) (last map[string]ports.UsageCount, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		last, err = tx.UsageCounts().All(ctx)
		return err
	})
	return last, err
}

// compareUsage compares one provider. What is not read within listTimeout is left out.
func (s *Service) compareUsage(ctx context.Context, p ports.Dynamic) error {
	orders, err := s.metered(ctx, p.Name())
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	products := map[string]*procurement.Counted{}
	for _, o := range orders {
		used, err := p.Usage(bounded, o.ref)
		if procurement.ClassOf(err) == procurement.Unsupported {
			break
		}
		s.calls.Count(p, "usage", err)
		if bounded.Err() != nil {
			break
		}
		if err != nil || used.Gone {
			continue // its own order looks after it
		}
		// Read after the seller's count, so that what passes meanwhile is not a difference.
		charged, err := s.charged(ctx, o.sessionID)
		if err != nil {
			return err
		}
		c := products[o.product]
		if c == nil {
			c = &procurement.Counted{Product: o.product}
			products[o.product] = c
		}
		c.Sessions, c.Seller, c.Charged = c.Sessions+1, c.Seller+used.Bytes, c.Charged+charged
	}
	count := ports.UsageCount{Provider: p.Name(), At: s.clock.Now()}
	for _, c := range products {
		count.Products = append(count.Products, *c)
		if c.Differs() {
			s.log.Warn("a provider has counted more traffic than agents are charged for; look at the product's sessions",
				"provider", p.Name(), "product", c.Product, "sessions", c.Sessions, "counted_bytes", c.Seller,
				"charged_bytes", c.Charged)
		}
	}
	slices.SortFunc(count.Products, func(a, b procurement.Counted) int { return cmp.Compare(a.Product, b.Product) })
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.UsageCounts().Put(ctx, count)
	})
}

func (s *Service) charged(ctx context.Context, sessionID string) (bytes int64, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		used, err := tx.Traffic().Usage(ctx, sessionID)
		bytes = used.Used()
		return err
	})
	return bytes, err
}

// metered returns the live orders of traffic at a provider that passes through the gateway.
func (s *Service) metered(ctx context.Context, provider string) (list []metered, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		orders, err := tx.Orders().LiveTraffic(ctx, provider, countedAtMost)
		list = nil
		for _, o := range orders {
			if isMetered(s.catalog, o.Product) {
				list = append(list, metered{ref: o.Ref, sessionID: o.SessionID, product: o.Product})
			}
		}
		return err
	})
	return list, err
}

func isMetered(c *catalogs.Catalog, product string) bool {
	p, err := c.Product(product)
	return err == nil && !p.Direct
}
