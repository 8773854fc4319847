package sim_test

import (
	"context"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// transitions lists where an order may go.
var transitions = map[recharge.Status][]recharge.Status{
	recharge.Pending:    {recharge.Confirming, recharge.Paid, recharge.Expired},
	recharge.Confirming: {recharge.Pending, recharge.Paid, recharge.Expired, recharge.Failed},
	recharge.Expired:    {recharge.Confirming, recharge.Paid},
}

// checkNow checks what holds after every step, whatever failed in it.
func (w *world) checkNow() {
	b := w.readTables()
	truth := map[string]recharge.Transfer{}
	for _, t := range w.chain.Finals() {
		truth[ref(t.Key)] = t
	}
	w.checkCredits(b, truth)
	w.checkOrders(b)
	w.checkWindows(b)
	w.checkEvents(b)
	w.checkCursor(b)
	w.checkStored(b)
}

// checkCredits checks that every credit is of a transfer to that agent, of that amount,
// that is final on the chain, and is made once.
func (w *world) checkCredits(b tables, truth map[string]recharge.Transfer) {
	seen, sums := map[string]bool{}, map[string]domain.Money{}
	for _, c := range b.credits {
		t, found := truth[c.ref]
		stored := b.transfers[t.Key]
		switch {
		case !found:
			w.fail("%s is credited with %s for %s, which is not final on the chain", c.agent, c.amount, c.ref)
		case seen[c.ref]:
			w.fail("%s is credited twice for %s", c.agent, c.ref)
		case t.Amount != c.amount || b.owners[t.To] != c.agent:
			w.fail("%s is credited with %s for %+v", c.agent, c.amount, t)
		case stored.State != recharge.Final || stored.OrderID != c.order || stored.AgentID != c.agent || stored.Amount != c.amount:
			w.fail("the credit %+v belongs to %+v", c, stored)
		}
		seen[c.ref] = true
		sums[c.agent] += c.amount
	}
	for agent, balance := range b.balances {
		if balance != sums[agent] {
			w.fail("the balance of %s is %s and its entries are %s", agent, balance, sums[agent])
		}
	}
	for key, t := range b.transfers {
		fact, final := truth[ref(key)]
		if t.State == recharge.Final && (!final || fact.Block != t.Block || fact.From != t.From || fact.To != t.To || !fact.BlockTime.Equal(t.BlockTime)) {
			w.fail("%+v is stored as final and is %+v on the chain", t, fact)
		}
		if t.State == recharge.Final && t.AgentID != "" && !seen[ref(key)] {
			w.fail("%+v is final and not credited", t)
		}
	}
}

func (w *world) checkOrders(b tables) {
	sums := map[string]domain.Money{}
	for _, t := range b.transfers {
		if t.OrderID == "" {
			continue
		}
		o, found := b.orders[t.OrderID]
		if !found || t.AgentID != o.AgentID {
			w.fail("%+v pays the order %+v", t, o)
		}
		if t.State == recharge.Final {
			sums[t.OrderID] += t.Amount
		}
	}
	for _, o := range b.orders {
		if o.Received != sums[o.ID] {
			w.fail("%s received %s and its final transfers are %s", o.ID, o.Received, sums[o.ID])
		}
		if paid := o.Received >= o.Amount; paid != (o.Status == recharge.Paid) || paid == o.PaidAt.IsZero() {
			w.fail("%s received %s of %s and is %s at %s", o.ID, o.Received, o.Amount, o.Status, o.PaidAt)
		}
		if o.Status == recharge.Failed && o.Received > 0 {
			w.fail("%s failed with %s", o.ID, o.Received)
		}
	}
	if len(b.orders) > w.calls {
		w.fail("%d calls made %d orders", w.calls, len(b.orders))
	}
	for _, o := range w.orders {
		if got := b.orders[o.ID]; got.AgentID != o.AgentID || got.Address != o.Address || got.Amount != o.Amount || !got.ExpiresAt.Equal(o.ExpiresAt) {
			w.fail("the order %+v became %+v", o, got)
		}
	}
}

// checkWindows checks that a window closes only when the final head is past it and
// everything paid in it has been read, whatever the clock shows and however long
// calls fail. What the index hides has not been read, and what was set aside not been booked.
func (w *world) checkWindows(b tables) {
	heads, err := w.heads()
	if err != nil {
		w.fail("heads: %v", err)
	}
	stored := map[recharge.Key]bool{}
	for _, key := range w.hidden {
		stored[key] = true
	}
	for key, t := range b.transfers {
		if t.State == recharge.Final {
			stored[key] = true
		}
	}
	finals := w.chain.Finals()
	for _, o := range b.orders {
		if o.Status != recharge.Expired && o.Status != recharge.Failed {
			continue
		}
		if !heads.Final.Time.After(o.ExpiresAt) {
			w.fail("%s is %s, its window is open until %s and the final head is of %s", o.ID, o.Status, o.ExpiresAt, heads.Final.Time)
		}
		for _, t := range finals {
			if t.To == o.Address && !t.BlockTime.After(o.ExpiresAt) && !stored[t.Key] && !b.aside[t.Key] {
				w.fail("%s is %s and %+v in its window is not stored", o.ID, o.Status, t)
			}
		}
	}
}

// checkEvents checks that every committed transition is legal and has one event, in
// the order of the transitions.
func (w *world) checkEvents(b tables) {
	changes := w.store.changes()
	for id, path := range changes {
		var want []webhook.Type
		for i, to := range path[1:] {
			if !slices.Contains(transitions[path[i]], to) {
				w.fail("%s went from %s to %s: %v", id, path[i], to, path)
			}
			if to != recharge.Pending {
				want = append(want, webhook.Type("recharge."+string(to)))
			}
		}
		if last := path[len(path)-1]; b.orders[id].Status != last {
			w.fail("%s is %s after %v", id, b.orders[id].Status, path)
		}
		if !slices.Equal(want, b.events[id]) {
			w.fail("%s went %v and the events are %v", id, path, b.events[id])
		}
	}
	if len(changes) != len(b.orders) || len(b.events) > len(b.orders) {
		w.fail("%d orders, %d were seen to be made, %d have events", len(b.orders), len(changes), len(b.events))
	}
}

// checkCursor checks that the scan cursor is not ahead of the final head, and goes back
// only for a rescan.
func (w *world) checkCursor(b tables) {
	var now recharge.ScanCursor
	err := w.db.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		now, _, err = tx.Transfers().ScanCursor(ctx, network)
		return err
	})
	heads, _ := w.heads()
	if err != nil || now.Final.Number > heads.Final.Number || now.Final.Time.After(heads.Final.Time) {
		w.fail("the cursor is %+v at the final head %+v, %v", now, heads.Final, err)
	}
	if w.rescans == 0 && now.Final.Number < w.cursor.Final.Number {
		w.fail("the cursor went back from %+v to %+v", w.cursor, now)
	}
	w.cursor = now
	for address, through := range b.through {
		// A new address was read through a moment before it was made, by a clock
		// that may be wrong.
		if through.After(heads.Final.Time) && !w.skewed {
			w.fail("%s was read through %s, the final head is of %s", address, through, heads.Final.Time)
		}
	}
}

// checkStored checks that everything behind a cursor is stored: for each address up to
// its time, for those that an order awaits a payment at up to the scan cursor, and for the
// others up to that of the rest, which is read each hour.
func (w *world) checkStored(b tables) {
	awaited := map[string]bool{}
	for _, o := range b.orders {
		late := o.ExpiresAt.Before(w.clock.Now().Add(-recharge.Late)) && !o.Status.Open()
		if !late && o.CreatedAt.Before(w.cursor.ReadAt) && !w.skewed { // it was there when the scan began, by the same clock
			awaited[o.Address] = true
		}
	}
	for _, t := range w.chain.Finals() {
		through, ours := b.through[t.To]
		if !ours || slices.Contains(w.hidden, t.Key) || b.aside[t.Key] || b.transfers[t.Key].State == recharge.Final {
			continue
		}
		if t.Block <= b.rest || t.Block <= w.cursor.Final.Number && awaited[t.To] {
			w.fail("the cursor is at block %d and %+v is not stored", w.cursor.Final.Number, t)
		}
		if !t.BlockTime.After(through) {
			w.fail("%s was read through %s and %+v is not stored", t.To, through, t)
		}
	}
}

// heads asks the chain past all faults.
func (w *world) heads() (recharge.Heads, error) {
	w.chain.OnCall(nil)
	defer w.chain.OnCall(w.faults.onCall)
	return w.chain.Heads(context.Background())
}
