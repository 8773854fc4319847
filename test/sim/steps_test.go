package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake"
)

// step does one thing, by weight.
func (w *world) step() {
	type option struct {
		weight int
		do     func()
	}
	options := []option{
		{14, w.create}, {14, w.payExact}, {6, w.payShort}, {4, w.payOver}, {4, w.payInParts}, {3, w.payAgain},
		{3, w.payDust}, {4, w.payTogether}, {4, w.payJunk}, {3, w.sweep}, {1, w.flood}, {3, w.payInEachBlock},
		{16, func() { w.wait(1 + w.rng.IntN(6)) }}, {10, func() { w.wait(20 + w.rng.IntN(30)) }},
		{4, func() { w.wait(300 + w.rng.IntN(400)) }}, {1, func() { w.wait(2000 + w.rng.IntN(3000)) }},
		{7, func() { w.forkNow() }}, {4, w.hide},
		{26, func() { w.watch(w.rng.IntN(2)) }}, {8, w.watchTogether}, {4, func() { w.kill() }},
		{3, w.outage}, {3, w.audit}, {1, w.auditAll}, {1, w.rescan}, {3, w.readOrder}, {1, w.newAccountKey},
	}
	if w.skewed {
		options = append(options, option{3, w.jumpClock})
	}
	if w.multiDay {
		options = append(options, option{2, func() { w.wait(80_000 + w.rng.IntN(20_000)) }})
	}
	total := 0
	for _, o := range options {
		total += o.weight
	}
	n := w.rng.IntN(total)
	for _, o := range options {
		if n -= o.weight; n < 0 {
			o.do()
			return
		}
	}
}

// create creates an order and, after a failure, repeats the call with the same key. It
// must not become two orders.
func (w *world) create() {
	agent := pick(w.rng, w.agents...)
	amount := pick[domain.Money](w.rng, 1, 2, 5, 5, 10, 10, 25) * usdt
	if w.rng.IntN(4) == 0 {
		amount += pick(w.rng, domain.Money(10_000), 990_000)
	}
	w.calls++
	in := payments.CreateOrder{AgentID: agent, Amount: amount, Call: idempotency.Call{Key: fmt.Sprintf("key-%d", w.calls),
		Path: "/billing/recharge", Hash: []byte(amount.String())}}
	for range 1 + w.rng.IntN(4) {
		done, err := w.recharges.Create(context.Background(), in)
		switch {
		case err == nil:
			w.logf("%s orders %s: %s to %s", agent, amount, done.View.ID, done.View.Address)
			w.recordOrder(done.View.Order, in)
			return
		case errors.Is(err, recharge.ErrLimit):
			w.count("order limit")
			return
		case errors.Is(err, recharge.ErrNoAddress):
			w.count("no address while the chain does not answer")
		case !injected(err):
			w.fail("create for %s: %v", agent, err)
			return
		}
		w.logf("%s orders %s and gets: %v", agent, amount, err)
	}
}

// recordOrder records the order that an agent was answered with.
func (w *world) recordOrder(o recharge.Order, in payments.CreateOrder) {
	if o.AgentID != in.AgentID || o.Amount != in.Amount || o.Network != network || !w.chain.Valid(o.Address) ||
		!o.ExpiresAt.Equal(o.CreatedAt.Add(recharge.Window)) {
		w.fail("the order of %+v is %+v", in, o)
	}
	if slices.ContainsFunc(w.orders, func(other recharge.Order) bool { return other.ID == o.ID }) {
		w.fail("two calls made one order %s", o.ID)
	}
	for _, other := range w.wallets {
		if other.address == o.Address && other.agent != o.AgentID {
			w.fail("%s belongs to %s and %s", o.Address, other.agent, o.AgentID)
		}
	}
	w.orders = append(w.orders, o)
	if own := (wallet{o.AgentID, o.Address}); !slices.Contains(w.wallets, own) {
		w.wallets = append(w.wallets, own)
	}
}

// pickOrder picks an order, mostly a recent one.
func (w *world) pickOrder() (recharge.Order, bool) {
	if len(w.orders) == 0 {
		return recharge.Order{}, false
	}
	n := len(w.orders)
	if recent := 5; n > recent && w.rng.IntN(4) > 0 {
		return w.orders[n-1-w.rng.IntN(recent)], true
	}
	return w.orders[w.rng.IntN(n)], true
}

func (w *world) sender() string { return fake.ChainAddress(w.rng.IntN(5)) }

func (w *world) pay(o recharge.Order, amount domain.Money) {
	key := w.chain.Send(w.sender(), o.Address, amount)
	w.logf("%s of %s is paid for %s, %.6s", amount, o.Amount, o.ID, key.TxID)
	if w.rng.IntN(2) == 0 {
		w.wait(1)
	}
}

func (w *world) payExact() {
	if o, found := w.pickOrder(); found {
		w.pay(o, o.Amount)
	}
}

func (w *world) payShort() {
	if o, found := w.pickOrder(); found {
		w.pay(o, max(o.Amount/domain.Money(2+w.rng.IntN(3)), 1))
	}
}

func (w *world) payOver() {
	if o, found := w.pickOrder(); found {
		w.pay(o, o.Amount+pick(w.rng, domain.Money(1), usdt, 100*usdt))
	}
}

func (w *world) payInParts() {
	o, found := w.pickOrder()
	if !found {
		return
	}
	rest := o.Amount
	for rest > 0 {
		part := min(rest, o.Amount/2+pick(w.rng, domain.Money(0), 1))
		w.pay(o, part)
		rest -= part
		if w.rng.IntN(3) == 0 {
			w.wait(w.rng.IntN(25))
			w.watch(w.rng.IntN(2))
		}
	}
}

func (w *world) payAgain() {
	if o, found := w.pickOrder(); found {
		w.pay(o, o.Amount)
		w.pay(o, o.Amount)
	}
}

func (w *world) payDust() {
	if o, found := w.pickOrder(); found {
		w.pay(o, domain.Money(1+w.rng.IntN(9_999)))
	}
}

// payTogether pays several orders, of one agent or of many, in one transaction.
func (w *world) payTogether() {
	var moves []fake.Move
	for range 2 + w.rng.IntN(3) {
		if o, found := w.pickOrder(); found {
			moves = append(moves, fake.Move{From: w.sender(), To: o.Address, Amount: o.Amount})
			if w.rng.IntN(3) == 0 {
				moves = append(moves, w.junk(o.Address))
			}
		}
	}
	if len(moves) > 0 {
		w.logf("one transaction of %d moves, %.6s", len(moves), w.chain.SendTx(moves...)[0].TxID)
	}
}

// junk sends a transfer that is not of the token.
func (w *world) junk(to string) fake.Move {
	m := fake.Move{From: w.sender(), To: to, Amount: 5 * usdt}
	switch w.rng.IntN(4) {
	case 0:
		m.Foreign = true
	case 1:
		m.Failed = true
	case 2:
		m.Amount = 0
	default:
		m.Absurd = true
	}
	return m
}

func (w *world) payJunk() {
	if o, found := w.pickOrder(); found {
		m := w.junk(o.Address)
		w.chain.SendTx(m)
		w.logf("junk for %s: %+v", o.ID, m)
	}
}

// flood hides what is there behind many small transfers.
func (w *world) flood() {
	if o, found := w.pickOrder(); found {
		for range 60 {
			w.chain.Send(w.sender(), o.Address, 1)
		}
		w.logf("60 transfers of nearly nothing to %s", o.Address)
	}
}

// payInEachBlock makes a payment in each of a number of blocks.
func (w *world) payInEachBlock() {
	for range 10 {
		w.payExact()
		w.mine(1)
	}
	w.wait(fake.FinalBehind)
	w.watch(w.rng.IntN(2))
}

// sweep takes money out of one of our addresses, sometimes into another.
func (w *world) sweep() {
	if len(w.wallets) == 0 {
		return
	}
	from := pick(w.rng, w.wallets...)
	held := domain.Money(0)
	for _, in := range w.chain.Finals() {
		if in.To == from.address {
			held += in.Amount
		}
		if in.From == from.address {
			held -= in.Amount
		}
	}
	to := w.sender()
	if w.rng.IntN(3) == 0 {
		to = pick(w.rng, w.wallets...).address
	}
	if held > 0 {
		key := w.chain.Send(from.address, to, held)
		w.logf("%s is swept to %s, %.6s", from.address, to, key.TxID)
		w.wait(1 + fake.FinalBehind) // until the sweep is final, so that it is not spent twice
	}
}

func (w *world) wait(blocks int) {
	w.mine(blocks)
	w.logf("%d blocks", blocks)
}

func (w *world) forkNow() { w.fork(1+w.rng.IntN(fake.FinalBehind+2), w.rng.IntN(2) == 0) }

func (w *world) fork(depth int, remine bool) {
	gone := w.chain.Fork(depth, remine)
	w.mu.Lock()
	for _, key := range gone {
		w.orphaned[key] = true
	}
	w.mu.Unlock()
	w.logf("%d blocks are replaced, %d transfers with them, remine %t", depth, len(gone), remine)
}

// hide makes the index lag behind for the next transfer to an order.
func (w *world) hide() {
	if o, found := w.pickOrder(); found {
		key, reads := w.chain.Send(w.sender(), o.Address, o.Amount), 1+w.rng.IntN(12)
		w.chain.Hide(key, reads)
		w.hidden = append(w.hidden, key)
		w.logf("%s is paid for %s, %.6s, and the index hides it %d times", o.Amount, o.ID, key.TxID, reads)
	}
}

// run calls the service with a context that a fault may cancel.
func (w *world) run(what string, do func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.faults.mu.Lock()
	w.faults.cancel = cancel
	w.faults.mu.Unlock()
	err := do(ctx)
	if err != nil && !injected(err) {
		w.fail("%s: %v", what, err)
	}
	if err != nil {
		w.logf("%s: %v", what, err)
	} else {
		w.logf("%s", what)
	}
}

func (w *world) watch(n int) {
	w.run(fmt.Sprintf("watcher %d scans", n), w.watchers[n].Watch)
}

// watchTogether runs both watchers, and more, concurrently if the seed is concurrent and
// one after the other otherwise.
func (w *world) watchTogether() {
	acts := []func(){func() { w.watch(0) }, func() { w.watch(1) }}
	if w.rng.IntN(3) == 0 {
		acts = append(acts, func() {
			w.run("audit beside", func(ctx context.Context) error { return w.watchers[1].Audit(ctx, 3) })
		})
	}
	if w.rng.IntN(6) == 0 {
		acts = append(acts, w.rescan)
	}
	var wg sync.WaitGroup
	for _, act := range acts {
		if w.concurrent {
			wg.Go(act)
		} else {
			act()
		}
	}
	wg.Wait()
}

// kill ends a watcher in the middle of whatever it does next.
func (w *world) kill() {
	n := w.rng.IntN(2)
	w.faults.mu.Lock()
	was := w.faults.unit
	w.faults.unit = 0.5
	w.faults.mu.Unlock()
	w.watch(n)
	w.faults.mu.Lock()
	w.faults.unit = was
	w.faults.mu.Unlock()
	w.restart(n)
	w.logf("watcher %d is killed and starts again", n)
}

// outage makes the chain fail for a time, which is often longer than a window.
func (w *world) outage() {
	w.faults.mu.Lock()
	w.faults.outage = true
	w.faults.mu.Unlock()
	for range 1 + w.rng.IntN(3) {
		w.wait(pick(w.rng, 5, 100, 700))
		if w.rng.IntN(2) == 0 {
			w.payExact()
		}
		w.watch(w.rng.IntN(2))
	}
	w.faults.mu.Lock()
	w.faults.outage = false
	w.faults.mu.Unlock()
}

func (w *world) audit() {
	w.run("audit", func(ctx context.Context) error { return w.watchers[w.rng.IntN(2)].Audit(ctx, 1+w.rng.IntN(5)) })
}

func (w *world) auditAll() {
	w.run("audit of all", func(ctx context.Context) error {
		_, _, err := w.watchers[0].AuditAll(ctx)
		return err
	})
}

func (w *world) rescan() {
	w.mu.Lock()
	w.rescans++
	w.mu.Unlock()
	from := w.chain.Now().Add(-time.Duration(w.faults.upTo(300)) * time.Minute)
	w.run("rescan", func(ctx context.Context) error {
		_, _, err := w.watchers[0].Rescan(ctx, from)
		return err
	})
}

// readOrder reads an order as its agent does, and as another.
func (w *world) readOrder() {
	o, found := w.pickOrder()
	if !found {
		return
	}
	v, err := w.recharges.Get(context.Background(), o.AgentID, o.ID)
	if err != nil {
		if !injected(err) {
			w.fail("read %s: %v", o.ID, err)
		}
		return
	}
	if v.ID != o.ID || v.Amount != o.Amount || v.Address != o.Address || !v.ExpiresAt.Equal(o.ExpiresAt) ||
		v.Confirmations < 0 || v.Confirmations > v.Required || v.Required != fake.FinalBehind ||
		(v.Status == recharge.Confirming || v.Status == recharge.Paid) && v.TxID == "" {
		w.fail("the view of %s is %+v", o.ID, v)
	}
	if _, err := w.recharges.Get(context.Background(), "agt_0", o.ID); !errors.Is(err, recharge.ErrNotFound) && !injected(err) {
		w.fail("another agent reads %s: %v", o.ID, err)
	}
}

func (w *world) newAccountKey() {
	w.newKey()
	w.logf("account key %d", w.keys)
}

// jumpClock moves the clock of the service; the chain's goes on.
func (w *world) jumpClock() {
	w.mu.Lock()
	w.skew = pick(w.rng, -time.Hour, -time.Minute, 0, 0, time.Minute, time.Hour)
	w.mu.Unlock()
	w.mine(1)
	w.logf("the clock is %s off", w.skew)
}
