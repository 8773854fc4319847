package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// orderPrefix begins the ids of upstream orders.
const orderPrefix = "ord_"

// callFor bounds one call of a provider; all of an order's together stay below
// procurement.SendFor from the moment it is sent.
const callFor = 30 * time.Second

// planOrder stores what is to be bought of a source for a session, in the unit
// that holds the money.
func (u *Sessions) planOrder(ctx context.Context, tx ports.Tx, s session.Session, from procurement.Source, now time.Time) error {
	in := intentFor(s, from)
	in.Key = u.ids.New(orderPrefix)
	return tx.Orders().Insert(ctx, procurement.Order{ID: in.Key, Kind: procurement.Purchase, SessionID: s.ID, Provider: from.Provider,
		Intent: in, Status: procurement.Planned, PlannedAt: now, NextAt: now.Add(inFlightFor)})
}

// intentFor is what a session needs of a source.
func intentFor(s session.Session, from procurement.Source) procurement.Intent {
	in := procurement.Intent{Key: s.ID, SessionID: s.ID, Type: s.Type, SKU: from.SKU, Location: s.Location, Quantity: s.Quantity,
		Days: s.Days, Bytes: s.Bytes}
	if s.Type == session.Static {
		in.MaxCost = billing.IPCost(s.Quantity, from.CostFor(s.Days))
	}
	return in
}

// goods is what of a delivery is sealed.
type goods struct {
	Access procurement.Access
	IPs    []procurement.IP
	// Direct: they are the agent's own to use, and not the gateway's. It is decided
	// when they are delivered, so that no change of the catalogue changes a session.
	Direct bool
}

// seal stores a delivery with an order.
func (u *Sessions) seal(o procurement.Order, d procurement.Delivery, direct bool) ([]byte, error) {
	plain, err := json.Marshal(goods{d.Access, d.IPs, direct})
	if err != nil {
		return nil, fmt.Errorf("seal the goods of %s: %w", o.ID, err)
	}
	return u.secrets.Seal(plain, "order/"+o.ID), nil
}

func (u *Sessions) unseal(o procurement.Order) (g goods, err error) {
	plain, err := u.secrets.Open(o.Goods, "order/"+o.ID)
	if err == nil {
		err = json.Unmarshal(plain, &g)
	}
	if err != nil {
		return g, fmt.Errorf("open the goods of %s: %w", o.ID, err)
	}
	return g, nil
}

// purchased is the confirmed purchase of a session; false: there is none.
func purchased(orders []procurement.Order) (procurement.Order, bool) {
	for _, o := range orders {
		if o.Kind == procurement.Purchase && o.Status == procurement.Confirmed {
			return o, true
		}
	}
	return procurement.Order{}, false
}

// DriveOrders goes on with every order that is due. One that fails does not keep
// the others waiting.
func (u *Sessions) DriveOrders(ctx context.Context) error {
	due := map[string]bool{}
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		ids, err := tx.Orders().Due(ctx, u.clock.Now(), passSize)
		if err != nil {
			return err
		}
		clear(due)
		for _, id := range ids {
			o, err := tx.Orders().Get(ctx, id)
			if err != nil {
				return err
			}
			due[o.SessionID] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("orders that are due: %w", err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var faults []error
	turn := make(chan struct{}, 8)
	for id := range due {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			if err := u.drive(ctx, id); err != nil {
				mu.Lock()
				faults = append(faults, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// maxSteps bounds how much is done about one session in a row.
const maxSteps = 20

// drive does what can be done now about a session that is creating, and about
// its orders. What has to wait has its time in NextAt. A caller who leaves does
// not stop it: what was asked of a seller is worth money.
func (u *Sessions) drive(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	for range maxSteps {
		more, err := u.driveOnce(ctx, id)
		if err != nil {
			return fmt.Errorf("orders of %s: %w", id, err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// driveOnce takes one step; more says that another may follow.
func (u *Sessions) driveOnce(ctx context.Context, id string) (more bool, err error) {
	var s session.Session
	var orders []procurement.Order
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if s, err = tx.Sessions().Load(ctx, id); err != nil {
			return err
		}
		orders, err = tx.Orders().Of(ctx, id)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(orders) == 0 {
		return false, u.deliverLocal(ctx, s)
	}
	now := u.clock.Now()
	for _, o := range orders {
		step := u.step(s, o, now)
		if step == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 3*callFor)
		defer cancel()
		return true, step(ctx, s, o)
	}
	return false, nil
}

// step is what is to be done about an order now; nil: nothing.
func (u *Sessions) step(s session.Session, o procurement.Order, now time.Time) func(context.Context, session.Session, procurement.Order) error {
	due := !o.NextAt.IsZero() && !now.Before(o.NextAt)
	switch {
	case o.Status == procurement.Planned && (o.Class == "" || due):
		return u.send
	case o.Status == procurement.Sent && due:
		return func(ctx context.Context, _ session.Session, o procurement.Order) error {
			return u.doubt(ctx, o, "the process that sent it has died")
		}
	case o.Status == procurement.Unknown && due:
		return u.ask
	case o.Status != procurement.Confirmed || !due:
		return nil
	case s.Status.Over():
		return u.closeOrder
	case s.Status == session.Active: // whatever the provider says of it at the moment
		return u.check
	}
	return u.await
}

// call bounds a provider's call.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callFor)
}

// change is a unit that changes an order and its session, and tells of it.
func (u *Sessions) change(ctx context.Context, o procurement.Order,
	fn func(ctx context.Context, b books, s session.Session, o procurement.Order) error) error {
	err := u.mark(ctx, o, fn)
	if err == nil {
		u.hub.SessionChanged(o.SessionID)
	}
	return err
}

// mark is a unit that changes an order alone. The session is locked before the
// order, as everywhere. An order that somebody else has decided meanwhile stays
// as it is.
func (u *Sessions) mark(ctx context.Context, o procurement.Order,
	fn func(ctx context.Context, b books, s session.Session, o procurement.Order) error) error {
	err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		if err != nil {
			return err
		}
		cur, err := tx.Orders().Get(ctx, o.ID)
		if err != nil {
			return err
		}
		return fn(ctx, books{tx, u.ids, u.clock.Now()}, s, cur)
	})
	if errors.Is(err, procurement.ErrDecided) {
		return nil
	}
	return err
}
