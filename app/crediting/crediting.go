// Package crediting books what arrived on the chain for one agent: transfers, credits, orders and events, in one unit.
package crediting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Repos is the repositories that a settlement uses.
type Repos interface {
	notify.Repos
	Ledger() ports.Ledger
	PayAddresses() ports.PayAddresses
	Recharges() ports.Recharges
	Transfers() ports.Transfers
}

// Reading is what one read of the chain returned for one agent.
type Reading struct {
	AgentID string
	// Transfers touch an address of the agent. Those that leave one have no
	// AgentID: they are money that the operator moved, and the audit counts them.
	Transfers []recharge.Transfer
	// Blocks is the time through which every address is known.
	Blocks time.Time
}

// errBookedBefore means that the ledger has an entry for a transfer that was never
// stored as final. One unit writes both, so another program wrote one of them.
var errBookedBefore = errors.New("the ledger has a booking of a transfer that was never final")

// Settled is what a settlement stored for the first time.
type Settled struct {
	Credited []recharge.Transfer
	Moved    []recharge.Transfer // between two of our addresses
}

// Settle stores a reading of a network and does all that follows from it in a unit.
func Settle(
	ctx context.Context, tx Repos, ids ports.IDs, network string, now time.Time, r Reading,
) (Settled, error) {
	s := &settlement{tx: tx, network: network, ids: ids, now: now, Reading: r}
	err := s.run(ctx)
	return s.Settled, err
}

// settlement is one run of that unit.
type settlement struct {
	tx      Repos
	network string
	ids     ports.IDs
	now     time.Time
	Reading

	fresh []recharge.Transfer // final now, and never before
	Settled
}

func (s *settlement) run(ctx context.Context) error {
	// Every unit that reads an agent's orders locks its wallet first.
	if _, err := s.tx.Ledger().Wallet(ctx, s.AgentID); err != nil {
		return err
	}
	for _, t := range s.Transfers {
		if err := s.storeTransfer(ctx, t); err != nil {
			return err
		}
	}
	return s.match(ctx)
}

// storeTransfer stores a transfer, or sets it aside to be credited.
func (s *settlement) storeTransfer(ctx context.Context, t recharge.Transfer) error {
	old, known, err := s.tx.Transfers().Transfer(ctx, t.Key)
	if err != nil || known && old.State == recharge.Final {
		return err // what is final was credited, and never changes
	}
	t.OrderID, t.FirstSeen = "", s.now
	if known {
		t.FirstSeen = old.FirstSeen
	}
	switch {
	case t.State == recharge.Final && t.AgentID != "":
		t.OrderID = old.OrderID // until match decides
		s.fresh = append(s.fresh, t)
		return nil
	case t.AgentID == "" && t.State != recharge.Final && !known:
		return nil // only what left for good is counted
	case t.State == recharge.Orphaned && (!known || old.State != recharge.Seen || old.Block != t.Block):
		return nil // it came back while the chain was asked
	case t.State == recharge.Ignored && known && old.State == recharge.Ignored:
		return nil
	case t.State == recharge.Seen && known:
		t.OrderID = old.OrderID // too
	}
	stored, err := s.tx.Transfers().PutTransfer(ctx, t)
	if stored && t.Note == recharge.OwnMove && t.State == recharge.Final {
		s.Moved = append(s.Moved, t)
	}
	return err
}

// match lets the domain decide which orders change, and stores the result.
func (s *settlement) match(ctx context.Context) error {
	seen, err := s.tx.Transfers().SeenOf(ctx, s.network, s.AgentID)
	if err != nil {
		return err
	}
	seen = slices.DeleteFunc(seen, func(t recharge.Transfer) bool {
		return slices.ContainsFunc(s.fresh, func(f recharge.Transfer) bool { return f.Key == t.Key })
	})
	orders, err := s.tx.Recharges().Payable(ctx, s.network, s.AgentID, s.paidSince(seen))
	if err != nil {
		return err
	}
	through, err := s.through(ctx, orders)
	if err != nil {
		return err
	}
	was := make(map[string]recharge.Status, len(orders))
	for _, o := range orders {
		was[o.ID] = o.Status
	}
	out := recharge.Settle(orders, s.fresh, seen, through)
	for _, t := range out.Transfers {
		if err := s.book(ctx, t); err != nil {
			return err
		}
	}
	for _, o := range out.Orders {
		if err := s.tx.Recharges().PutOrder(ctx, o); err != nil {
			return err
		}
		if err := s.Enqueue(ctx, o, was[o.ID]); err != nil {
			return err
		}
	}
	return nil
}

// paidSince returns the earliest time at which the window of an order closed that one of
// the transfers may still pay.
func (s *settlement) paidSince(seen []recharge.Transfer) time.Time {
	since := s.now
	for _, t := range slices.Concat(s.fresh, seen) {
		if closed := t.BlockTime.Add(-recharge.Late); closed.Before(since) {
			since = closed
		}
	}
	return since
}

// through returns the chain time up to which every address that the orders are paid
// to is known. No window closes before it is past: not by the clock, and not in
// an outage.
func (s *settlement) through(ctx context.Context, orders []recharge.Order) (time.Time, error) {
	to := make([]string, 0, len(orders))
	for _, o := range orders {
		to = append(to, o.Address)
	}
	ours, err := s.tx.PayAddresses().Owned(ctx, s.network, to)
	var through time.Time
	for i, address := range to {
		known := s.Blocks
		if own := ours[address].ReadThrough; own.After(known) { // of an earlier version
			known = own
		}
		if i == 0 || known.Before(through) {
			through = known
		}
	}
	return through, err
}

// book writes a transfer with the order it is matched to, and credits it if it
// is final.
func (s *settlement) book(ctx context.Context, t recharge.Transfer) error {
	if t.State == recharge.Final {
		e := billing.CreditRecharge(t.Amount)
		e.ID, e.AgentID, e.OrderID, e.At = s.ids.New(billing.IDPrefix), s.AgentID, t.OrderID, s.now
		e.Ref = recharge.RefPrefix(t.Network) + t.TxID + ":" + strconv.Itoa(t.LogIndex)
		if _, err := s.tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
			if errors.Is(err, ports.ErrDuplicate) {
				return fmt.Errorf("%s: %w", e.Ref, errBookedBefore)
			}
			return fmt.Errorf("book %s: %w", e.Ref, err)
		}
	}
	stored, err := s.tx.Transfers().PutTransfer(ctx, t)
	if err == nil && !stored && t.State == recharge.Final {
		err = fmt.Errorf("transfer %s:%d is final already", t.TxID, t.LogIndex)
	}
	if err == nil && t.State == recharge.Final {
		s.Credited = append(s.Credited, t)
		err = s.tx.Transfers().TakeBack(ctx, t.Key)
	}
	return err
}

// events are the webhook events of an order. That one waits again, because
// all that was seen is gone, is not news: the agent has still to pay.
var orderEvents = map[recharge.Status]webhook.Type{
	recharge.Confirming: webhook.RechargeConfirming,
	recharge.Paid:       webhook.RechargePaid,
	recharge.Expired:    webhook.RechargeExpired,
	recharge.Failed:     webhook.RechargeFailed,
}

func (s *settlement) Enqueue(ctx context.Context, o recharge.Order, was recharge.Status) error {
	of, news := orderEvents[o.Status]
	if o.Status == was || !news {
		return nil
	}
	_, err := notify.Enqueue(ctx, s.tx, s.ids, s.now, notify.Notification{AgentID: o.AgentID, Of: of,
		Data: map[string]string{"order_id": o.ID, "status": string(o.Status)}})
	return err
}
