package reconcile

import (
	"context"
	"errors"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// claims looks up the records of each entry of a list, in transactions of
// lookupBatch entries. They begin after the list was read: what was ordered meanwhile
// is not in it.
func (s *Service) claims(ctx context.Context, p ports.Lister,
	listed []procurement.Delivery) ([]procurement.Match, error) {
	all := make([]procurement.Match, len(listed))
	for from := 0; from < len(listed); from += lookupBatch {
		part := listed[from:min(from+lookupBatch, len(listed))]
		err := s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			open, _, err := tx.Orders().CountOpen(ctx, procurement.Order{Provider: p.Name()})
			if err != nil {
				return err
			}
			owned, err := tx.Addresses().Taken(ctx, p.Name())
			if err != nil {
				return err
			}
			for i, d := range part {
				c := procurement.Match{OpenOrder: open > 0}
				for _, ip := range d.IPs {
					c.Owned = c.Owned || owned[ip.Addr.String()]
				}
				if c.Order, c.Over, err = claimed(ctx, tx, p.Name(), d); err != nil {
					return err
				}
				c.Cancels = p.Capabilities().CanCancel(c.Order.Intent.Type)
				all[from+i] = c
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// claimed returns the purchase with the ref of an entry, else the order with its label,
// and whether its session has ended.
func claimed(ctx context.Context, tx repos, provider string, d procurement.Delivery) (procurement.Order, bool, error) {
	o, err := tx.Orders().ByRef(ctx, provider, d.Ref)
	if errors.Is(err, procurement.ErrOrderNotFound) && d.Label != "" {
		o, err = tx.Orders().Get(ctx, d.Label)
		if err == nil && o.Provider != provider {
			return procurement.Order{}, false, nil
		}
	}
	if errors.Is(err, procurement.ErrOrderNotFound) {
		return procurement.Order{}, false, nil
	}
	if err != nil {
		return o, false, err
	}
	s, err := tx.Sessions().Load(ctx, o.SessionID)
	if errors.Is(err, session.ErrNotFound) {
		return o, true, nil
	}
	return o, s.Status.Over(), err
}
