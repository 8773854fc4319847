package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/supply"
	"agentproxy/ports"
)

// orderPrefix begins the ids of upstream orders.
const orderPrefix = "ord_"

// callFor bounds one call of a provider; all of an order's together stay below
// supply.SendFor from the moment it is sent.
const callFor = 30 * time.Second

// completeFor is how long a seller may deliver addresses one after the other.
const completeFor = 10 * time.Minute

// checkEvery is how often a provider is asked whether a live order is still
// there.
const checkEvery = time.Hour

// planOrder stores what is to be bought of a source for a session, in the unit
// that holds the money.
func (u *Sessions) planOrder(ctx context.Context, tx ports.Tx, s session.Session, from supply.Source, now time.Time) error {
	in := intentFor(s, from)
	in.Key = u.ids.New(orderPrefix)
	return tx.Orders().Insert(ctx, supply.Order{ID: in.Key, Kind: supply.Purchase, SessionID: s.ID, Provider: from.Provider,
		Intent: in, Status: supply.Planned, PlannedAt: now, NextAt: now.Add(inFlightFor)})
}

// intentFor is what a session needs of a source.
func intentFor(s session.Session, from supply.Source) supply.Intent {
	in := supply.Intent{Key: s.ID, SessionID: s.ID, Type: s.Type, SKU: from.SKU, Location: s.Location, Quantity: s.Quantity,
		Days: s.Days, Bytes: s.Bytes}
	if s.Type == session.Static {
		in.MaxCost = billing.IPCost(s.Quantity, from.CostFor(s.Days))
	}
	return in
}

// goods is what of a delivery is sealed.
type goods struct {
	Access supply.Access
	IPs    []supply.IP
}

func (u *Sessions) seal(o supply.Order, d supply.Delivery) ([]byte, error) {
	plain, err := json.Marshal(goods{d.Access, d.IPs})
	if err != nil {
		return nil, fmt.Errorf("seal the goods of %s: %w", o.ID, err)
	}
	return u.secrets.Seal(plain, "order/"+o.ID), nil
}

func (u *Sessions) unseal(o supply.Order) (g goods, err error) {
	if len(o.Goods) == 0 {
		return g, nil
	}
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
func purchased(orders []supply.Order) (supply.Order, bool) {
	for _, o := range orders {
		if o.Kind == supply.Purchase && o.Status == supply.Confirmed {
			return o, true
		}
	}
	return supply.Order{}, false
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
	var orders []supply.Order
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
	if len(orders) == 0 && s.Status == session.Creating {
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
func (u *Sessions) step(s session.Session, o supply.Order, now time.Time) func(context.Context, session.Session, supply.Order) error {
	due := !o.NextAt.IsZero() && !now.Before(o.NextAt)
	switch {
	case o.Status == supply.Planned && (o.Class == "" || due):
		return u.send
	case o.Status == supply.Sent && due:
		return func(ctx context.Context, _ session.Session, o supply.Order) error {
			return u.doubt(ctx, o, "the process that sent it has died")
		}
	case o.Status == supply.Unknown && due:
		return u.ask
	case o.Status != supply.Confirmed || !o.ClosedAt.IsZero() || !due:
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
func (u *Sessions) change(ctx context.Context, o supply.Order,
	fn func(ctx context.Context, b books, s session.Session, o supply.Order) error) error {
	err := u.mark(ctx, o, fn)
	if err == nil {
		u.hub.SessionChanged(o.SessionID)
	}
	return err
}

// mark is a unit that changes an order alone. The session is locked before the
// order, as everywhere. An order that somebody else has decided meanwhile stays
// as it is.
func (u *Sessions) mark(ctx context.Context, o supply.Order,
	fn func(ctx context.Context, b books, s session.Session, o supply.Order) error) error {
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
	if errors.Is(err, supply.ErrDecided) {
		return nil
	}
	return err
}

// doubt notes that nobody knows the outcome of an order.
func (u *Sessions) doubt(ctx context.Context, o supply.Order, reason string) error {
	var frozen bool
	err := u.mark(ctx, o, func(ctx context.Context, b books, _ session.Session, o supply.Order) error {
		before := o.FrozenAt
		o, err := o.Doubt(reason, b.now)
		if err != nil {
			return err
		}
		frozen = before.IsZero() && !o.FrozenAt.IsZero()
		return b.tx.Orders().Put(ctx, o)
	})
	if err == nil && frozen {
		u.log.Error("an upstream order is unknown for a day; decide with: agentproxy orders adopt or release",
			"order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider)
	}
	return err
}

// refuse notes that an order provably bought nothing, and goes on: with the next
// source, or by giving the money back. One that was planned when it was read must
// be planned still.
func (u *Sessions) refuse(ctx context.Context, o supply.Order, c supply.Class, reason string) error {
	u.log.Warn("a provider refused an order", "order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider,
		"class", string(c), "reason", reason)
	read := o.Status
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o supply.Order) error {
		if read == supply.Planned && o.Status != supply.Planned {
			return supply.ErrDecided // somebody else has sent it meanwhile, and what was refused here was not the order
		}
		o, err := o.Refuse(c, reason, b.now)
		if err != nil {
			return err
		}
		if err := b.tx.Orders().Put(ctx, o); err != nil {
			return err
		}
		if o.Kind == supply.Renewal {
			return u.renewalRefused(ctx, b, s, o)
		}
		if s.Status != session.Creating {
			return nil
		}
		return u.tryNext(ctx, b, s, o)
	})
}

// tryNext goes to the next source of a session whose order was refused, in the
// unit of the refusal; without one the session fails.
func (u *Sessions) tryNext(ctx context.Context, b books, s session.Session, refused supply.Order) error {
	product, err := u.catalog.product(s.ProductNo)
	if err != nil {
		return u.failIn(ctx, b, s, ports.Refusal(refused.Class))
	}
	orders, err := b.tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return err
	}
	tried := map[[2]string]bool{}
	for _, o := range orders {
		tried[[2]string{o.Provider, o.Intent.SKU}] = true
	}
	for _, from := range u.catalog.sources(product, s.Location, s.Days) {
		if tried[[2]string{from.Provider, from.SKU}] {
			continue
		}
		s.Provider = from.Provider
		if p, ok := u.catalog.local(from.Provider); ok {
			active, err := u.activateLocal(ctx, b, s, from, p)
			if refusedHere(err) {
				continue
			}
			if err != nil {
				return err
			}
			return b.tx.Sessions().Put(ctx, active)
		}
		if err := u.planOrder(ctx, b.tx, s, from, b.now); err != nil {
			return err
		}
		return b.tx.Sessions().Put(ctx, s)
	}
	s.Provider = refused.Provider
	return u.failIn(ctx, b, s, ports.Refusal(refused.Class))
}

// confirm takes what a provider has for an order, also when the session has
// ended meanwhile: then it is given up at once.
func (u *Sessions) confirm(ctx context.Context, o supply.Order, d supply.Delivery) error {
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o supply.Order) error {
		o, err := o.Confirm(d, b.now)
		if err != nil {
			return err
		}
		return u.taken(ctx, b, s, o, d)
	})
}

// taken stores a confirmed purchase as the provider has it, and activates the
// session as soon as it is delivered.
func (u *Sessions) taken(ctx context.Context, b books, s session.Session, o supply.Order, d supply.Delivery) (err error) {
	if d.State == supply.Live && s.Type == session.Static && len(d.IPs) < o.Intent.Quantity && b.now.Sub(o.SentAt) < completeFor {
		d.State = supply.Pending
		o = o.Take(d, b.now)
	}
	if o.Goods, err = u.seal(o, d); err != nil {
		return err
	}
	switch {
	case s.Status.Over():
		o.NextAt = b.now
	case d.State == supply.Gone:
		o.ClosedAt, o.NextAt, o.Reason = b.now, time.Time{}, "the provider took it back"
		err = u.failIn(ctx, b, s, ports.ErrProvider)
	case d.State == supply.Live && s.Status == session.Creating:
		o.NextAt = b.now.Add(u.checkAfter(s))
		s.Provider = o.Provider
		var active session.Session
		if active, err = u.activate(ctx, b, s, exitsOf(s, d)); refusedHere(err) {
			o.NextAt = b.now
			err = u.failIn(ctx, b, s, err)
		} else if err == nil {
			err = b.tx.Sessions().Put(ctx, active)
		}
	}
	if err != nil {
		return err
	}
	return b.tx.Orders().Put(ctx, o)
}

// exitsOf are the exits of a delivery. A dynamic session at an upstream has one
// that nobody knows the address of.
func exitsOf(s session.Session, d supply.Delivery) []session.Exit {
	if s.Type == session.Dynamic && len(d.IPs) == 0 {
		return []session.Exit{{}}
	}
	exits := make([]session.Exit, len(d.IPs))
	for i, ip := range d.IPs {
		exits[i].IP = ip.Addr
	}
	return exits
}

// checkAfter is how long a live order is left alone.
func (u *Sessions) checkAfter(s session.Session) time.Duration {
	if u.direct(s) {
		return pollDirect
	}
	return checkEvery
}
