package settlement

import (
	"context"
	"log/slog"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The times of a direct session that has ended.
const (
	// AlarmAfter is when an error is logged that a provider has not counted it yet.
	AlarmAfter = time.Hour
	// SettleWithin is when it is settled by what the provider counted last. An outage
	// over a weekend is shorter, and no agent's money is held without end.
	SettleWithin = 72 * time.Hour
	// settleAnyway is when the settlement's own job does that, whatever became of the
	// order.
	settleAnyway = SettleWithin + time.Hour
	callTimeout  = 30 * time.Second
)

// DirectRepos is the repositories that book and settle a direct session.
type DirectRepos interface {
	ledger.Repos
	Orders() ports.Orders
	Sessions() ports.Sessions
	Counters() ports.Counters
}

// Direct ends the sessions whose agents connect to the provider itself. The access is cut at the provider first, then
// its counter is awaited, and then the session is settled: until then it holds what it may still have to pay for.
type Direct struct {
	store   ports.Unit[DirectRepos]
	clock   ports.Clock
	ids     ports.IDs
	catalog *catalogs.Catalog
	access  *fulfilment.Service
	calls   ports.CallCounter
	// restarts counts the counters that began anew; nil: they are not counted.
	restarts func(provider string)
	log      *slog.Logger
}

// NewDirect returns a Direct.
func NewDirect(store ports.Store, clock ports.Clock, ids ports.IDs, catalog *catalogs.Catalog,
	access *fulfilment.Service, calls ports.CallCounter, log *slog.Logger) *Direct {
	unit := ports.Narrow(store, func(tx ports.Tx) DirectRepos { return tx })
	return &Direct{store: unit, clock: clock, ids: ids, catalog: catalog, access: access, calls: calls, log: log}
}

// SettleBy returns when a session that ends now is settled at the latest. It is zero for
// one that is settled at once, because its traffic was counted here or its access was
// never delivered.
func SettleBy(
	ctx context.Context, tx DirectRepos, c *catalogs.Catalog, access *fulfilment.Service, s session.Session,
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

// Settle takes the next step of a session that has ended, by its confirmed purchase. It
// returns true if nothing of it is left to settle, so that the purchase may be cancelled;
// else NextAt of the order is when to go on.
func (d *Direct) Settle(ctx context.Context, s session.Session, o procurement.Order) (settled bool, err error) {
	if s.Type != session.Dynamic || s.ActivatedAt.IsZero() || s.Money.Held.Total() == 0 || o.Kind != procurement.Purchase {
		return true, nil
	}
	if g, err := d.access.Open(o); err != nil || !g.Direct {
		return err == nil, err
	}
	if d.clock.Now().Sub(s.EndedAt) >= SettleWithin {
		d.log.Error("a direct session is settled by an old count, because its provider has none since it ended",
			"session_id", s.ID, "order_id", o.ID, "provider", o.Provider, "reason", o.Reason)
		return false, d.change(ctx, o, d.settle)
	}
	known, _ := d.catalog.Provider(o.Provider)
	p, ok := known.(ports.Dynamic)
	switch {
	case !ok:
		return false, d.postpone(ctx, o, "the provider is not configured")
	case o.CutAt.IsZero():
		return false, d.cut(ctx, p, o)
	}
	return false, d.count(ctx, p, o)
}

// cut stops the access at the provider. Where it has no switch the order is cancelled
// after a last count, which may end the counter.
func (d *Direct) cut(ctx context.Context, p ports.Dynamic, o procurement.Order) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.Disable(bounded, o.Ref)
	d.calls.Count(p, "disable", err)
	state := o.State
	if procurement.ClassOf(err) == procurement.Unsupported {
		var used procurement.Usage
		used, err = p.Usage(bounded, o.Ref)
		d.calls.Count(p, "usage", err)
		if err == nil && !used.Gone {
			if sure, err := d.book(ctx, p, o, used); err != nil || !sure {
				return err
			}
			err = p.Cancel(bounded, o.Ref)
			d.calls.Count(p, "cancel", err)
			state = procurement.Gone
		}
		if procurement.ClassOf(err) == procurement.Unsupported {
			state, err = o.State, nil // nothing stops it before its cap or its end
		}
	}
	switch procurement.ClassOf(err) {
	case "":
	case procurement.NotFound:
		return d.missing(ctx, o)
	default:
		return d.postpone(ctx, o, procurement.ReasonOf(err))
	}
	return d.change(ctx, o, func(ctx context.Context, c *change) error {
		c.order.State, c.order.CutAt, c.order.NextAt = state, c.now, c.now
		c.order.LostAt, c.order.Reason = time.Time{}, ""
		return c.tx.Orders().Put(ctx, c.order)
	})
}

// book books what a provider counts of an access that is not given up yet. It returns false if the counter fell, and
// has to be read again before there is nothing to read.
func (d *Direct) book(
	ctx context.Context, p ports.Dynamic, o procurement.Order, u procurement.Usage,
) (sure bool, err error) {
	sure = true
	lag := p.Capabilities().CounterLag
	err = d.change(ctx, o, func(ctx context.Context, c *change) error {
		total, err := Total(ctx, c.tx, &c.order, u, lag)
		if err != nil {
			return err
		}
		if sure = !c.order.Counter.Doubtful(u, lag); !sure {
			c.order.NextAt = c.now.Add(max(lag, procurement.RereadCounterAfter))
		}
		_, more, err := BookUsage(ctx, c.tx, c.session, total, c.now)
		if err != nil {
			return err
		}
		if err := c.tx.Orders().Put(ctx, c.order); err != nil {
			return err
		}
		return CountUsage(ctx, c.tx, c.session, more)
	})
	return sure, err
}

// count books what the provider counted, and settles the session once that is complete:
// its lag is over since the cut, and since the last bytes that came late.
func (d *Direct) count(ctx context.Context, p ports.Dynamic, o procurement.Order) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	used, err := p.Usage(bounded, o.Ref)
	d.calls.Count(p, "usage", err)
	switch {
	case err != nil:
		return d.postpone(ctx, o, procurement.ReasonOf(err))
	case used.Gone && o.State != procurement.Gone:
		return d.missing(ctx, o)
	case used.Gone:
		return d.change(ctx, o, d.settle) // it was cancelled after its last count
	}
	lag := p.Capabilities().CounterLag
	return d.change(ctx, o, func(ctx context.Context, c *change) error {
		total, err := Total(ctx, c.tx, &c.order, used, lag)
		if err != nil {
			return err
		}
		before, more, err := BookUsage(ctx, c.tx, c.session, total, c.now)
		if err != nil {
			return err
		}
		again := max(lag, time.Second)
		doubtful := c.order.Counter.Doubtful(used, lag)
		if doubtful {
			again = max(lag, procurement.RereadCounterAfter)
		}
		complete := !doubtful && !used.AsOf.Before(c.order.CutAt.Add(lag)) && (more == 0 || lag == 0)
		if complete || before.Used()+more >= c.session.Bytes {
			err = d.settle(ctx, c)
		} else {
			c.order.LostAt, c.order.NextAt = time.Time{}, c.now.Add(again)
			err = c.tx.Orders().Put(ctx, c.order)
		}
		if err != nil {
			return err
		}
		return CountUsage(ctx, c.tx, c.session, more)
	})
}

// missing goes on after a provider that does not show the access. It is settled by the
// last count once it is lost.
func (d *Direct) missing(ctx context.Context, o procurement.Order) error {
	return d.change(ctx, o, func(ctx context.Context, c *change) error {
		if c.order.State == procurement.Gone { // the session ended because it is lost
			return d.settle(ctx, c)
		}
		c.order = c.order.RecordMissing(c.now)
		if err := c.tx.Orders().Put(ctx, c.order); err != nil {
			return err
		}
		owed, err := c.tx.Orders().Owed(ctx)
		if err != nil || !c.order.Lost(owed[c.order.Provider], c.now) {
			return err
		}
		return d.settle(ctx, c)
	})
}

// settle charges what was counted and gives the rest back. The order is due at once.
func (d *Direct) settle(ctx context.Context, c *change) error {
	used, err := c.tx.Traffic().Usage(ctx, c.session.ID)
	if err != nil {
		return err
	}
	if err := ledger.NewBook(c.tx, d.ids, c.now).SettleEnded(ctx, &c.session, used); err != nil {
		return err
	}
	if err := c.tx.Traffic().SetSettleAt(ctx, c.session.ID, time.Time{}); err != nil {
		return err
	}
	if err := c.tx.Sessions().Put(ctx, c.session); err != nil {
		return err
	}
	c.order.NextAt, c.order.FrozenAt = c.now, time.Time{}
	return c.tx.Orders().Put(ctx, c.order)
}

// postpone delays the next step by the backoff. After AlarmAfter it logs an error, once.
func (d *Direct) postpone(ctx context.Context, o procurement.Order, reason string) error {
	var alarm bool
	err := d.change(ctx, o, func(ctx context.Context, c *change) error {
		age := c.now.Sub(c.session.EndedAt)
		if alarm = age >= AlarmAfter && c.order.FrozenAt.IsZero(); alarm {
			c.order.FrozenAt = c.now
		}
		c.order.Reason, c.order.NextAt = reason, c.now.Add(procurement.Backoff(age))
		return c.tx.Orders().Put(ctx, c.order)
	})
	if err == nil && alarm {
		d.log.Error("an ended direct session cannot be settled: its provider does not count it",
			"session_id", o.SessionID, "order_id", o.ID, "provider", o.Provider, "reason", reason)
	}
	return err
}

// change is a transaction on a purchase that is not closed, and its ended session.
type change struct {
	tx      DirectRepos
	now     time.Time
	session session.Session
	order   procurement.Order
}

// change runs fn on the order and its session as they are now, unless another process has
// settled the session meanwhile.
func (d *Direct) change(ctx context.Context, o procurement.Order,
	fn func(ctx context.Context, c *change) error) error {
	var before, after procurement.Order
	err := d.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx DirectRepos) error {
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		if err != nil {
			return err
		}
		before, err = tx.Orders().Get(ctx, o.ID)
		if after = before; err != nil || s.Money.Held.Total() == 0 || !before.ClosedAt.IsZero() {
			return err
		}
		c := &change{tx: tx, now: d.clock.Now(), session: s, order: before}
		err = fn(ctx, c)
		after = c.order
		return err
	})
	if err == nil {
		d.ReportRestart(before, after)
	}
	return err
}
