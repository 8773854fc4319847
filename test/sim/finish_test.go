package sim_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake"
)

// finish ends all faults, lets time pass, and counts the money.
func (w *world) finish() {
	w.faults.set(false)
	for _, key := range w.hidden { // the index catches up
		w.chain.Hide(key, 0)
	}
	w.logf("all faults end")
	w.mine(1 + fake.FinalBehind)
	b := w.readTables()
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
	if len(w.violations()) > 0 {
		return
	}
	before := w.readTables()
	for n := range 2 {
		w.watch(n)
		w.audit()
	}
	w.auditAll()
	after := w.readTables()
	before.through, after.through, before.rest, after.rest = nil, nil, 0, 0
	if !reflect.DeepEqual(before, after) {
		w.fail("another scan changed something")
	}
	w.checkNow()
	w.checkEnd(after)
}

// settle scans until nothing changes, and audits every address.
func (w *world) settle() {
	quiet := 0
	for range 300 {
		before := w.readTables()
		w.must("watch", w.watchers[0].Watch)
		after := w.readTables()
		before.through, after.through, before.rest, after.rest = nil, nil, 0, 0
		if quiet++; !reflect.DeepEqual(before, after) {
			quiet = 0
		}
		if quiet >= 3 && w.caughtUp() {
			break
		}
	}
	w.logf("the watchers are done")
	if w.covered() { // the operator reads the chain again
		w.rescans++
		w.must("rescan", func(ctx context.Context) error {
			_, _, err := w.watchers[0].Rescan(ctx, fake.Start)
			return err
		})
	}
	// What an index hid long enough, an audit finds.
	var drifts []payments.Drift
	audit := func() {
		w.must("audit of all", func(ctx context.Context) (err error) {
			_, drifts, err = w.watchers[0].AuditAll(ctx)
			return err
		})
		w.must("watch", w.watchers[0].Watch)
	}
	for range 3 {
		audit()
	}
	if len(drifts) > 0 { // a history that was read to no avail is read again after six hours
		w.mine(int(6 * time.Hour / fake.BlockEvery))
		audit()
		audit()
	}
	checked, drifts, err := w.watchers[1].AuditAll(context.Background())
	if addresses := len(w.readTables().owners); err != nil || checked != addresses || len(drifts) > 0 {
		w.fail("the audit checked %d of %d addresses and found %+v, %v", checked, addresses, drifts, err)
	}
}

// covered reports whether an address was paid without the index, and money moved away from it, which may be as much:
// its balance is as it is known then.
func (w *world) covered() bool {
	all := w.chain.Finals()
	return slices.ContainsFunc(all, func(in recharge.Transfer) bool {
		return slices.Contains(w.hidden, in.Key) &&
			slices.ContainsFunc(all, func(out recharge.Transfer) bool { return out.From == in.To })
	})
}

// caughtUp reports whether all blocks are read.
func (w *world) caughtUp() bool {
	w.must("watch", w.watchers[0].Watch)
	heads, err := w.heads()
	w.checkCursor(w.readTables())
	return err == nil && w.cursor.Final.Number == heads.Final.Number
}

func (w *world) must(what string, do func(context.Context) error) {
	if err := do(context.Background()); err != nil {
		w.fail("%s without faults: %v", what, err)
	}
}

// checkEnd checks what holds after the last step: no money is lost, and no order waits.
func (w *world) checkEnd(b tables) {
	want, got := map[string]domain.Money{}, map[string]domain.Money{}
	credited := map[string]bool{}
	for _, c := range b.credits {
		got[c.agent] += c.amount
		credited[c.ref] = true
	}
	for _, t := range w.chain.Finals() {
		agent, ours := b.owners[t.To]
		if _, swept := b.owners[t.From]; !ours || swept { // what the operator moves is no payment
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
		lost := func(key recharge.Key) bool { return w.orphaned[key] }
		if o.Status == recharge.Failed && !slices.ContainsFunc(w.store.matched[o.ID], lost) {
			w.fail("%s failed and nothing that was seen for it ever went away", o.ID)
		}
	}
	for _, t := range b.transfers {
		if t.State == recharge.Seen {
			w.fail("%+v is still seen, not final", t)
		}
		if t.State == recharge.Orphaned && !w.orphaned[t.Key] {
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
	w.countOutcomes(b)
}

// countOutcomes counts what this seed came across.
func (w *world) countOutcomes(b tables) {
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
