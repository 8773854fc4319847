package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// books is everything that the database holds about recharges.
type books struct {
	owners    map[string]string // agent of each address
	orders    map[string]recharge.Order
	transfers map[recharge.Key]recharge.Transfer
	credits   []credit
	events    map[string][]webhook.Type // by order, oldest first
	keys      map[string]bool           // of events
	balances  map[string]domain.Money
	through   map[string]time.Time
}

type credit struct {
	agent, ref, order string
	amount            domain.Money
}

func ref(k recharge.Key) string { return fmt.Sprintf("usdt:%s:%s:%d", k.Network, k.TxID, k.LogIndex) }

// read reads the tables as they are: it repeats none of the program's own code.
func (w *world) read() (b books) {
	b = books{owners: map[string]string{}, orders: map[string]recharge.Order{}, transfers: map[recharge.Key]recharge.Transfer{},
		events: map[string][]webhook.Type{}, keys: map[string]bool{}, balances: map[string]domain.Money{}, through: map[string]time.Time{}}
	w.rows(`SELECT address, agent_id, read_through FROM recharge_addresses`, func(scan func(...any)) {
		var address, agent string
		var through int64
		scan(&address, &agent, &through)
		b.owners[address], b.through[address] = agent, time.UnixMicro(through).UTC()
	})
	w.rows(`SELECT id, agent_id, network, address, amount, received, status, created_at, expires_at, paid_at FROM recharge_orders`,
		func(scan func(...any)) {
			var o recharge.Order
			var created, expires, paid int64
			scan(&o.ID, &o.AgentID, &o.Network, &o.Address, &o.Amount, &o.Received, &o.Status, &created, &expires, &paid)
			o.CreatedAt, o.ExpiresAt = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
			if paid != 0 {
				o.PaidAt = time.UnixMicro(paid).UTC()
			}
			b.orders[o.ID] = o
		})
	w.rows(`SELECT network, tx_id, log_index, from_address, to_address, amount, block, block_time, state, agent_id, order_id
		FROM recharge_transfers`, func(scan func(...any)) {
		var t recharge.Transfer
		var at int64
		scan(&t.Network, &t.TxID, &t.LogIndex, &t.From, &t.To, &t.Amount, &t.Block, &at, &t.State, &t.AgentID, &t.OrderID)
		t.BlockTime = time.UnixMicro(at).UTC()
		b.transfers[t.Key] = t
	})
	w.rows(`SELECT agent_id, ref, order_id, trial + own, type FROM ledger_entries ORDER BY agent_id, ord`, func(scan func(...any)) {
		var c credit
		var of string
		scan(&c.agent, &c.ref, &c.order, &c.amount, &of)
		if of != "recharge" {
			w.fail("the ledger has an entry of type %s", of)
		}
		b.credits = append(b.credits, c)
	})
	w.rows(`SELECT agent_id, trial + own FROM wallets`, func(scan func(...any)) {
		var agent string
		var balance domain.Money
		scan(&agent, &balance)
		b.balances[agent] = balance
	})
	w.rows(`SELECT type, data, id FROM outbox ORDER BY seq`, func(scan func(...any)) {
		var of webhook.Type
		var text, id string
		scan(&of, &text, &id)
		var data struct {
			Order  string `json:"order_id"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal([]byte(text), &data); err != nil || string(of) != "recharge."+data.Status {
			w.fail("event %s says %s", of, text)
		}
		b.events[data.Order], b.keys[id] = append(b.events[data.Order], of), true
	})
	return b
}

func (w *world) rows(query string, each func(scan func(...any))) {
	rows, err := w.db.Writer().Query(query)
	if err != nil {
		w.fail("%s: %v", query, err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		each(func(into ...any) {
			if err := rows.Scan(into...); err != nil {
				w.fail("%s: %v", query, err)
			}
		})
	}
	if err := rows.Err(); err != nil {
		w.fail("%s: %v", query, err)
	}
}

// legal lists where an order may go.
var legal = map[recharge.Status][]recharge.Status{
	recharge.Pending:    {recharge.Confirming, recharge.Paid, recharge.Expired},
	recharge.Confirming: {recharge.Pending, recharge.Paid, recharge.Expired, recharge.Failed},
	recharge.Expired:    {recharge.Confirming, recharge.Paid},
}

// checkNow checks what holds after every step, whatever failed in it.
func (w *world) checkNow() {
	b := w.read()
	truth := map[string]recharge.Transfer{}
	for _, t := range w.chain.Finals() {
		truth[ref(t.Key)] = t
	}
	w.checkCredits(b, truth)
	w.checkOrders(b)
	w.checkWindows(b)
	w.checkEvents(b)
	w.checkMark(b)
	w.checkKnown(b)
}

// checkCredits checks that every credit is of a transfer to that agent, of that amount,
// that is final on the chain, and is made once.
func (w *world) checkCredits(b books, truth map[string]recharge.Transfer) {
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

func (w *world) checkOrders(b books) {
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
// calls fail. What the index hides has not been read.
func (w *world) checkWindows(b books) {
	heads, err := w.heads()
	if err != nil {
		w.fail("heads: %v", err)
	}
	known := map[recharge.Key]bool{}
	for _, key := range w.hidden {
		known[key] = true
	}
	for key, t := range b.transfers {
		if t.State == recharge.Final {
			known[key] = true
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
			if t.To == o.Address && !t.BlockTime.After(o.ExpiresAt) && !known[t.Key] {
				w.fail("%s is %s and %+v in its window is not known", o.ID, o.Status, t)
			}
		}
	}
}

// checkEvents checks that every committed transition is legal and has one event, in
// the order of the transitions.
func (w *world) checkEvents(b books) {
	changes := w.store.changes()
	for id, path := range changes {
		var want []webhook.Type
		for i, to := range path[1:] {
			if !slices.Contains(legal[path[i]], to) {
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

// checkMark checks that the scan cursor is not ahead of the final head, and goes back
// only for a rescan.
func (w *world) checkMark(b books) {
	var now recharge.ScanCursor
	err := w.db.View(context.Background(), func(ctx context.Context, tx ports.Tx) (err error) {
		now, _, err = tx.Recharges().ScanCursor(ctx, network)
		return err
	})
	heads, _ := w.heads()
	if err != nil || now.Final.Number > heads.Final.Number || now.Final.Time.After(heads.Final.Time) {
		w.fail("the mark is %+v at the final head %+v, %v", now, heads.Final, err)
	}
	if w.rescans == 0 && now.Final.Number < w.mark.Final.Number {
		w.fail("the mark went back from %+v to %+v", w.mark, now)
	}
	w.mark = now
	for address, through := range b.through {
		// A new address is known through a moment before it was made, by a clock
		// that may be wrong.
		if through.After(heads.Final.Time) && !w.skewed {
			w.fail("%s is known through %s, the final head is of %s", address, through, heads.Final.Time)
		}
	}
}

// checkKnown checks that everything behind a cursor is stored: for each address up to
// its time, and for all of them up to the scan cursor.
func (w *world) checkKnown(b books) {
	for _, t := range w.chain.Finals() {
		through, ours := b.through[t.To]
		if !ours || slices.Contains(w.hidden, t.Key) || b.transfers[t.Key].State == recharge.Final {
			continue
		}
		if t.Block <= w.mark.Final.Number {
			w.fail("the mark is at block %d and %+v is not stored", w.mark.Final.Number, t)
		}
		if !t.BlockTime.After(through) {
			w.fail("%s is known through %s and %+v is not stored", t.To, through, t)
		}
	}
}

// heads asks the chain past all faults.
func (w *world) heads() (recharge.Heads, error) {
	w.chain.OnCall(nil)
	defer w.chain.OnCall(w.dice.onCall)
	return w.chain.Heads(context.Background())
}

// finish ends all faults, lets time pass, and counts the money.
func (w *world) finish() {
	w.dice.set(false)
	for _, key := range w.hidden { // the index catches up
		w.chain.Hide(key, 0)
	}
	w.logf("all faults end")
	w.mine(1 + fake.FinalBehind)
	b := w.read()
	for _, o := range b.orders { // every window closes
		if left := o.ExpiresAt.Sub(w.chain.Now()); left > 0 {
			w.mine(int(left/fake.BlockEvery) + 1)
		}
	}
	w.mine(5 * fake.FinalBehind) // what was seen and went away is given some time to come back
	if w.rng.IntN(4) == 0 {
		w.restart(0)
	}
	w.settle()
	if len(w.faults()) > 0 {
		return
	}
	before := w.read()
	for n := range 2 {
		w.watch(n)
		w.audit()
	}
	w.auditAll()
	after := w.read()
	before.through, after.through = nil, nil
	if !reflect.DeepEqual(before, after) {
		w.fail("looking again changed something")
	}
	w.checkNow()
	w.checkEnd(after)
}

// settle looks until there is nothing new, and has everything audited.
func (w *world) settle() {
	quiet := 0
	for range 300 {
		before := w.read()
		w.must("watch", w.watchers[0].Watch)
		after := w.read()
		before.through, after.through = nil, nil
		if quiet++; !reflect.DeepEqual(before, after) {
			quiet = 0
		}
		if quiet >= 3 && w.caughtUp() {
			break
		}
	}
	w.logf("the watchers are done")
	// What an index hid long enough, an audit finds.
	for range 3 {
		w.must("audit of all", func(ctx context.Context) error {
			_, _, err := w.watchers[0].AuditAll(ctx)
			return err
		})
		w.must("watch", w.watchers[0].Watch)
	}
	checked, drifts, err := w.watchers[1].AuditAll(context.Background())
	if addresses := len(w.read().owners); err != nil || checked != addresses || len(drifts) > 0 {
		w.fail("the audit checked %d of %d addresses and found %+v, %v", checked, addresses, drifts, err)
	}
}

// caughtUp reports whether all blocks are read.
func (w *world) caughtUp() bool {
	w.must("watch", w.watchers[0].Watch)
	heads, err := w.heads()
	w.checkMark(w.read())
	return err == nil && w.mark.Final.Number == heads.Final.Number
}

func (w *world) must(what string, do func(context.Context) error) {
	if err := do(context.Background()); err != nil {
		w.fail("%s without faults: %v", what, err)
	}
}

// checkEnd checks what holds after the last step: no money is lost, and no order waits.
func (w *world) checkEnd(b books) {
	want, got := map[string]domain.Money{}, map[string]domain.Money{}
	credited := map[string]bool{}
	for _, c := range b.credits {
		got[c.agent] += c.amount
		credited[c.ref] = true
	}
	for _, t := range w.chain.Finals() {
		agent, ours := b.owners[t.To]
		if !ours {
			continue
		}
		want[agent] += t.Amount
		if !credited[ref(t.Key)] {
			w.fail("%s never got %s of %s (block %d, %s)", agent, t.Amount, ref(t.Key), t.Block, t.BlockTime.Sub(fake.Start))
		}
	}
	if !maps.Equal(want, got) {
		w.fail("agents are owed %v and were credited with %v", want, got)
	}
	for _, o := range b.orders {
		if o.Status.Open() {
			w.fail("%s is still %s, its window closed at %s", o.ID, o.Status, o.ExpiresAt.Sub(fake.Start))
		}
		lost := func(key recharge.Key) bool { return w.gone[key] }
		if o.Status == recharge.Failed && !slices.ContainsFunc(w.store.shown[o.ID], lost) {
			w.fail("%s failed and nothing that was seen for it ever went away", o.ID)
		}
	}
	for _, t := range b.transfers {
		if t.State == recharge.Seen {
			w.fail("%+v is still only seen", t)
		}
		if t.State == recharge.Orphaned && !w.gone[t.Key] {
			w.fail("%+v is orphaned and its block was never replaced", t)
		}
		if t.State == recharge.Final && t.OrderID == "" && t.AgentID != "" && !w.skewed {
			for _, o := range b.orders {
				if o.AgentID == t.AgentID && o.Status == recharge.Expired && o.CreatedAt.Before(t.BlockTime) &&
					!t.BlockTime.After(o.ExpiresAt.Add(recharge.Late)) {
					w.fail("%s waits for money that %+v did not bring", o.ID, t)
				}
			}
		}
	}
	faults, entries, err := w.db.Verify(context.Background())
	if err != nil || entries != len(b.credits) {
		w.fail("verify: %d entries of %d, %v", entries, len(b.credits), err)
	}
	for _, f := range faults {
		w.fail("verify: %s: %s: %s", f.Rule, f.Where, f.Detail)
	}
	w.census(b)
}

// census counts what this seed came across.
func (w *world) census(b books) {
	parts := map[string]int{}
	for _, t := range b.transfers {
		w.count("transfer " + string(t.State))
		if t.State == recharge.Final && t.OrderID != "" {
			parts[t.OrderID]++
		}
		if t.State == recharge.Final && t.OrderID == "" && t.AgentID != "" {
			w.count("money without an order")
		}
	}
	for id, path := range w.store.changes() {
		o := b.orders[id]
		w.count("order " + string(o.Status))
		if parts[id] > 1 {
			w.count("order in parts")
		}
		if o.Received > o.Amount {
			w.count("order paid over")
		}
		if o.PaidAt.After(o.ExpiresAt) {
			w.count("order paid late")
		}
		for i, to := range path[1:] {
			w.count(strings.Join([]string{"went", string(path[i]), "to", string(to)}, " "))
		}
	}
}
