package settlement

import (
	"context"
	"slices"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// Ending is what the end of a session would return and give up.
type Ending struct {
	ledger.Quote              // the cost is 0
	Refunded     domain.Money // what it holds and does not need any more
	Forfeited    domain.Money // of what was paid for time that is left
}

// Foretell returns what the end of a session by its agent would do, and changes nothing. A session that has ended
// returns and gives up nothing more.
func Foretell(ctx context.Context, tx Repos, c *catalogs.Catalog, s ports.SessionRead, now time.Time) (Ending, error) {
	w, err := ledger.NewBook(tx, nil, now).Wallet(ctx, s.AgentID, true)
	e := Ending{Quote: *ledger.QuoteOf(w, 0)}
	if err != nil || s.Status.Over() {
		return e, err
	}
	e.Forfeited = s.Forfeited(now)
	if _, local := c.InProcess(s.Provider); !local {
		orders, err := tx.Orders().Of(ctx, s.ID)
		keeps := func(o procurement.Order) bool { return o.Undelivered() && keepsHeld(c, o) }
		if err != nil || slices.ContainsFunc(orders, keeps) {
			return e, err
		}
	}
	_, held, _ := s.Cost()
	for _, entry := range w.Release(held, now) {
		e.Refunded += entry.Available.Total()
	}
	e.BalanceAfter += e.Refunded
	return e, nil
}
