package economics_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/test/apptest"
)

// left is what is still to be done.
const left = `SELECT 'order ' || id || ' ' || provider || ' ' || kind || ' ' || status || ' ' || state || ' ' || reason FROM upstream_orders
	WHERE frozen_at = 0 AND (status IN ('planned', 'sent', 'unknown') OR kind = 'purchase' AND status = 'confirmed' AND state = 'pending' AND closed_at = 0)
	UNION ALL SELECT 'to close ' || o.id || ' ' || o.provider || ' ' || o.reason FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
	WHERE o.status = 'confirmed' AND o.closed_at = 0 AND s.status NOT IN ('creating', 'active')
	UNION ALL SELECT 'creating ' || id FROM sessions WHERE status = 'creating' AND NOT EXISTS
	(SELECT 1 FROM upstream_orders o WHERE o.session_id = sessions.id AND o.frozen_at > 0)`

// finish ends the faults, ends what is sold, and works until nothing is left.
func (w *world) finish() {
	for _, s := range w.shops {
		s.calm, s.soldOut, s.closed, s.empty, s.price = true, false, time.Time{}, time.Time{}, 100
	}
	for _, r := range w.replicas {
		r.store.FailUpdates()
	}
	w.settle()
	w.operate()
	w.settle()
	for _, s := range w.Column(`SELECT agent_id || ' ' || id FROM sessions WHERE status IN ('creating', 'active') ORDER BY seq`) {
		agent, id, _ := strings.Cut(s, " ")
		_, err := w.replica().Sessions.Terminate(context.Background(), agent, id)
		apptest.OK(w.t, err)
	}
	w.settle()
	w.operate()
	w.settle()
	w.Clock.Advance(31 * time.Hour) // what an unlabelled sale is shows once it is delivered
	w.settle()
	w.reconciled(w.replicas[0])
}

// settle works until nothing is left, for 100 hours at most.
func (w *world) settle() {
	for spent, pause := time.Duration(0), 15*time.Second; spent < 100*time.Hour; spent += pause {
		w.drive(w.replicas[0])
		w.drive(w.replicas[1])
		if len(w.Column(left)) == 0 {
			return
		}
		pause = min(pause*5/4, 20*time.Minute)
		w.Clock.Advance(pause)
	}
}

// operate decides the frozen orders as an operator does who looks at the shops' pages.
func (w *world) operate() {
	desk := w.replicas[0].Desk
	for _, o := range w.Column(`SELECT id || ' ' || provider || ' ' || kind FROM upstream_orders WHERE status = 'unknown' AND frozen_at > 0 ORDER BY seq`) {
		var id, provider, kind string
		_, err := fmt.Sscan(o, &id, &provider, &kind)
		apptest.OK(w.t, err)
		w.add("decided by the operator")
		if ref, made := w.made(w.shop(provider), id); made {
			if _, err = desk.Adopt(context.Background(), id, ref); err == nil {
				continue
			}
		}
		if _, err = desk.Release(context.Background(), id); err != nil {
			w.t.Errorf("the operator cannot decide %s: %v", o, err)
		}
	}
	for _, o := range w.Column(`SELECT id || ' ' || provider FROM upstream_orders WHERE status = 'confirmed' AND state = 'pending' AND frozen_at > 0 AND closed_at = 0`) {
		id, provider, _ := strings.Cut(o, " ")
		if w.comes(w.shop(provider), id) {
			continue
		}
		w.add("given up by the operator")
		if _, err := desk.Lost(context.Background(), id); err != nil {
			w.t.Errorf("the operator cannot give up %s: %v", id, err)
		}
	}
}

// made returns under which ref a shop executed an order.
func (w *world) made(s *shop, id string) (ref string, ok bool) {
	for _, b := range s.book {
		if _, renewed := b.renewals[id]; b.Key == id || renewed {
			return b.ref, s.shown(b)
		}
	}
	return "", false
}

// comes reports whether a shop still delivers an order, which an operator asks it.
func (w *world) comes(s *shop, id string) bool {
	for _, b := range s.book {
		if b.Key == id {
			return b.readyAt.Sub(b.at) < never
		}
	}
	return false
}

// check compares the shops' books with the ledger.
func (w *world) check() {
	for _, what := range w.Column(left) {
		w.t.Errorf("left for ever: %s", what)
	}
	for _, held := range w.Column(`SELECT agent_id || ' ' || (held_trial + held_own) FROM wallets WHERE held_trial + held_own <> 0`) {
		w.t.Errorf("held for ever: %s", held)
	}
	bought := w.matches()
	w.losses(bought)
	excess := domain.Money(0)
	for _, n := range w.Column(`SELECT cost - max_cost FROM upstream_orders WHERE status = 'confirmed' AND max_cost > 0 AND cost > max_cost`) {
		var x int64
		_, err := fmt.Sscan(n, &x)
		apptest.OK(w.t, err)
		excess += domain.Money(x)
	}
	if excess != w.excess {
		w.t.Errorf("orders cost %s more than they were to, and %s was counted", excess, w.excess)
	}
	w.Audit()
}

// matches returns the sales of each session. What a shop sold is an order of the service, was
// given back, or was reported.
func (w *world) matches() map[string][]*sale {
	bought := map[string][]*sale{}
	for _, s := range w.shops {
		for _, b := range s.book {
			owner := w.Column(`SELECT session_id FROM upstream_orders WHERE provider = ? AND ref = ? AND kind = 'purchase' AND status = 'confirmed'`, s.name, b.ref)
			switch {
			case len(owner) == 1:
				bought[owner[0]] = append(bought[owner[0]], b)
			case len(owner) > 1:
				w.t.Errorf("%s was sold once and belongs to %v", b.ref, owner)
			case w.orphans[b.ref]:
				w.add("reported as an orphan")
			case s.shown(b) && !b.broken:
				w.t.Errorf("%s sold %s for order %s, and it is not stored", s.name, b.ref, b.Key)
			}
			for key := range b.renewals {
				status := w.Column(`SELECT status FROM upstream_orders WHERE id = ?`, key)
				if len(status) != 1 || status[0] != string(procurement.Confirmed) && !b.broken && s.shown(b) {
					w.t.Errorf("%s renewed %s for order %s, which is %v", s.name, b.ref, key, status)
				}
			}
		}
	}
	return bought
}

// losses checks that agents paid for each session what is owed for it. Exempt is what the
// catalogue allows to be sold below its cost, and what the shop took back from its buyer.
func (w *world) losses(bought map[string][]*sale) {
	for _, row := range w.Column(`SELECT id || ' ' || product_no || ' ' || status || ' ' || (CASE reason WHEN '' THEN '-' ELSE reason END) || ' ' ||
		(charged_trial + charged_own - refunded_trial - refunded_own) || ' ' || COALESCE((SELECT SUM(cost - max_cost) FROM upstream_orders o
		WHERE o.session_id = sessions.id AND o.status = 'confirmed' AND o.max_cost > 0 AND o.cost > o.max_cost), 0) FROM sessions ORDER BY seq`) {
		var id, product, status, reason string
		var paid, excess int64
		_, err := fmt.Sscan(row, &id, &product, &status, &reason, &paid, &excess)
		apptest.OK(w.t, err)
		owed, broken := domain.Money(0), false
		for _, b := range bought[id] {
			owed += b.owed()
			broken = broken || b.broken
		}
		switch {
		case paid > 0 && len(bought[id]) == 0:
			w.t.Errorf("%s paid %d for nothing", row, paid)
		case reason == "provider_lost" && !broken:
			w.t.Errorf("%s lost what its shop still had", row)
		case broken || product == belowCost:
			w.add("exempt")
		case domain.Money(paid+excess) < owed:
			w.t.Errorf("%s: its agent paid %s, %s was reported as excess, and %s is owed", row, domain.Money(paid), domain.Money(excess), owed)
		default:
			w.add("covered")
		}
	}
}
