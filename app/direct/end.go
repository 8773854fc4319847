package direct

import (
	"context"
	"time"

	"agentproxy/app/catalog"
	"agentproxy/app/fulfilment"
	"agentproxy/domain/session"
)

// SettleBy returns when a session that ends now is settled at the latest. It is zero for
// one that is settled at once, because its traffic was counted here or its access was
// never delivered.
func SettleBy(
	ctx context.Context, tx Repos, c *catalog.Catalog, access *fulfilment.Service, s session.Session,
) (time.Time, error) {
	if s.Type != session.Dynamic || s.ActivatedAt.IsZero() {
		return time.Time{}, nil
	}
	if p, known := c.Provider(s.Provider); known && !p.Capabilities().Direct {
		return time.Time{}, nil
	}
	orders, err := tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return time.Time{}, err
	}
	o, ok := fulfilment.Purchased(orders)
	if !ok || !o.ClosedAt.IsZero() {
		return time.Time{}, nil
	}
	g, err := access.Open(o)
	if err != nil || !g.Direct {
		return time.Time{}, err
	}
	return s.EndedAt.Add(settleAnyway), nil
}
