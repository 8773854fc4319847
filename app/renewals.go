package app

import (
	"context"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// planExtension holds the cost of a renewal and stores what the seller is to be
// asked for, in one unit. The end of the session moves when the seller has
// confirmed.
func (u *Sessions) planExtension(ctx context.Context, b books, in Renew, n renewal) (Done, string, error) {
	orders, err := b.tx.Orders().Of(ctx, n.ID)
	if err != nil {
		return Done{}, "", err
	}
	bought, ok := purchased(orders)
	if !ok {
		return Done{}, "", ports.ErrProvider.Msgf("the provider does not know this session; buy a new one")
	}
	s := n.was
	o := procurement.Order{ID: u.ids.New(orderPrefix), Kind: procurement.Renewal, SessionID: s.ID, Provider: s.Provider, Intent: bought.Intent,
		Status: procurement.Planned, Ref: bought.Ref, PlannedAt: b.now, NextAt: b.now.Add(inFlightFor)}
	o.Intent.Key, o.Intent.Days, o.Intent.MaxCost = o.ID, n.days, 0
	if err := b.hold(ctx, n.wallet, &s, n.cost, ":"+o.ID, 0); err != nil {
		return Done{}, "", err
	}
	if err := b.tx.Sessions().Put(ctx, s); err != nil {
		return Done{}, "", err
	}
	if err := b.tx.Orders().Insert(ctx, o); err != nil {
		return Done{}, "", err
	}
	n.Session = s
	return Done{View: u.view(n.SessionRead, b.now), Status: inFlight}, o.ID,
		u.keep(ctx, b.tx, in.AgentID, in.Call, s.ID+orderMark+o.ID, inFlight, b.now)
}

// extend asks the seller, after the unit that held the money, and answers with
// what is known: 200 renewed, 202 not known yet.
func (u *Sessions) extend(ctx context.Context, in Renew, order string) (Done, error) {
	unknown := u.drive(ctx, in.SessionID)
	ctx = context.WithoutCancel(ctx)
	var o procurement.Order
	err := u.store.Read(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		o, err = tx.Orders().Get(ctx, order)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	status := 202
	switch o.Status {
	case procurement.Confirmed:
		status = 200
	case procurement.Refused:
		return Done{}, ports.Refusal(o.Class)
	default:
		if unknown != nil {
			u.log.Warn("a renewal is not known yet", "session_id", in.SessionID, "order_id", order, "err", unknown)
		}
	}
	v, err := u.Read(ctx, in.AgentID, in.SessionID)
	if err != nil {
		return Done{}, err
	}
	return Done{View: v, Status: status}, u.answered(ctx, in.AgentID, in.Call, in.SessionID+orderMark+order, status)
}

// ends is when each address of a delivery ends, in the words of a Snapshot.
func ends(d procurement.Delivery) (list []string) {
	for _, ip := range d.IPs {
		at := ip.ExpiresAt
		if at.IsZero() {
			at = d.ExpiresAt
		}
		list = append(list, ip.Addr.String()+" "+at.UTC().Format(time.RFC3339))
	}
	return list
}

// advanced counts the addresses that end otherwise than before, of those that
// were there before: one that the seller exchanged meanwhile proves nothing.
func advanced(before procurement.Snapshot, d procurement.Delivery) (n, of int) {
	was := map[string]string{}
	for _, end := range before.Refs {
		addr, at, _ := strings.Cut(end, " ")
		was[addr] = at
	}
	for _, end := range ends(d) {
		addr, at, _ := strings.Cut(end, " ")
		if then, known := was[addr]; known {
			if of++; at != then {
				n++
			}
		}
	}
	return n, of
}

// sendRenewal asks when the addresses end, marks the renewal as sent, and makes
// the one call that may spend money.
func (u *Sessions) sendRenewal(ctx context.Context, o procurement.Order) error {
	known, _ := u.catalog.provider(o.Provider)
	p, ok := known.(ports.Static)
	if !ok {
		return u.refuse(ctx, o, procurement.Invalid, "the provider is not configured")
	}
	bounded, cancel := call(ctx)
	defer cancel()
	d, err := p.Read(bounded, o.Ref)
	u.count(p, "read", err)
	if err != nil {
		return u.refuse(ctx, o, provenClass(err), procurement.ReasonOf(err))
	}
	switch d.State {
	case procurement.Gone:
		return u.refuse(ctx, o, procurement.NotFound, "the order has ended")
	case procurement.Pending: // without its ends nobody could tell whether they move
		return u.refuse(ctx, o, procurement.Temporary, "the addresses are not there at the moment")
	}
	before := procurement.Snapshot{Refs: ends(d), At: u.clock.Now()}
	before.Funds, err = u.fundsBefore(bounded, p)
	if err != nil {
		return u.refuse(ctx, o, provenClass(err), procurement.ReasonOf(err))
	}
	// What a renewal costs is told by nobody beforehand: about what a new order of
	// its term does, whether that can be had or not.
	q, err := p.Quote(bounded, o.Intent)
	u.count(p, "quote", err)
	if c := procurement.ClassOf(err); c != "" && c != procurement.OutOfStock && c != procurement.Unsupported {
		return u.refuse(ctx, o, provenClass(err), procurement.ReasonOf(err))
	}
	o, err = u.markSent(ctx, p, o, before, q.Cost)
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	return u.placeRenewal(ctx, p, o)
}

func (u *Sessions) placeRenewal(ctx context.Context, p ports.Static, o procurement.Order) error {
	bounded, cancel := call(ctx)
	defer cancel()
	done, err := p.Renew(bounded, o.Ref, o.Intent)
	u.count(p, "renew", err)
	if err != nil {
		if c := procurement.ClassOf(err); c != procurement.Ambiguous {
			return u.refuse(ctx, o, c, procurement.ReasonOf(err))
		}
		return u.doubt(ctx, o, procurement.ReasonOf(err))
	}
	renewed, class, reason := 0, procurement.Class(""), ""
	var end time.Time
	for _, r := range done {
		if r.Err == nil {
			renewed++
			if end.IsZero() || r.ExpiresAt.Before(end) {
				end = r.ExpiresAt
			}
			continue
		}
		if class != procurement.Ambiguous {
			class, reason = procurement.ClassOf(r.Err), procurement.ReasonOf(r.Err)
		}
	}
	switch {
	case renewed == o.Intent.Quantity:
		return u.renewalConfirmed(ctx, o, end)
	case renewed == 0 && class != procurement.Ambiguous && class != "":
		return u.refuse(ctx, o, class, reason)
	}
	return u.doubt(ctx, o, strconv.Itoa(renewed)+" of "+strconv.Itoa(o.Intent.Quantity)+" addresses are renewed: "+reason)
}

// renewalSettles is how long a renewal may be on its way at a seller.
const renewalSettles = 15 * time.Minute

// askRenewal reads the ends of the addresses again: all have moved, or none has,
// it is too late for it and no money is missing. Some is for the operator, unless
// the session has ended and the addresses with it.
func (u *Sessions) askRenewal(ctx context.Context, p ports.Provider, s session.Session, o procurement.Order) error {
	bounded, cancel := call(ctx)
	defer cancel()
	d, err := p.Read(bounded, o.Ref)
	u.count(p, "read", err)
	if gone := err == nil && d.State == procurement.Gone || procurement.ClassOf(err) == procurement.NotFound; gone && s.Status.Over() {
		return u.refuse(ctx, o, procurement.NotFound, "the session has ended, and what was bought for it")
	}
	if err != nil {
		return u.doubt(ctx, o, procurement.ReasonOf(err))
	}
	funds, err := p.Balance(bounded)
	u.count(p, "balance", err)
	if err != nil {
		return u.doubt(ctx, o, procurement.ReasonOf(err))
	}
	var spent domain.Money
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		spent, err = tx.Orders().Spent(ctx, o.Provider, o.Before.At)
		return err
	})
	if err != nil {
		return err
	}
	missing := o.Before.Funds.Known && funds.Known && funds.Amount+spent < o.Before.Funds.Amount
	n, of := advanced(o.Before, d)
	switch {
	case n > 0 && n == of:
		return u.renewalConfirmed(ctx, o, d.ExpiresAt)
	case n == 0 && of > 0 && u.clock.Now().Sub(o.SentAt) >= renewalSettles && d.State == procurement.Live && !missing:
		return u.refuse(ctx, o, procurement.Temporary, "the addresses end as before")
	}
	return u.doubt(ctx, o, strconv.Itoa(n)+" of "+strconv.Itoa(of)+" addresses are renewed")
}

// renewalConfirmed extends the session and charges what was held for it.
func (u *Sessions) renewalConfirmed(ctx context.Context, o procurement.Order, end time.Time) error {
	return u.change(ctx, o, func(ctx context.Context, b books, s session.Session, o procurement.Order) error {
		o, err := o.Confirm(procurement.Delivery{Ref: o.Ref, State: procurement.Live, ExpiresAt: end}, b.now)
		if err != nil {
			return err
		}
		o.ClosedAt = b.now
		if err := b.tx.Orders().Put(ctx, o); err != nil || s.Status != session.Active {
			return err
		}
		if s, err = s.Extend(o.Intent.Days); err != nil {
			return err
		}
		_, err = u.renewed(ctx, b, s)
		return err
	})
}

// renewalRefused gives back what was held for a renewal, and frees its key.
func (u *Sessions) renewalRefused(ctx context.Context, b books, s session.Session, o procurement.Order) error {
	if err := b.tx.Idempotency().DropFor(ctx, s.AgentID, s.ID+orderMark+o.ID); err != nil || s.Status != session.Active {
		return err
	}
	if err := b.releaseRenewal(ctx, &s, o, "was refused"); err != nil {
		return err
	}
	if err := note(ctx, b.tx, u.ids, s.ID, "renewal_failed", ports.Refusal(o.Class).Code, b.now); err != nil {
		return err
	}
	return b.tx.Sessions().Put(ctx, s)
}

// releaseRenewal gives back what a session holds for a renewal. The day that it
// was held on has that much more to spend.
func (b books) releaseRenewal(ctx context.Context, s *session.Session, o procurement.Order, why string) error {
	return b.release(ctx, s, ":"+o.ID, "renewal of "+s.ProductNo+" "+why, o.PlannedAt)
}
