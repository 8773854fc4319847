package procurement_test

import (
	"context"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake/proxycheap"
)

// unfinished selects open orders and all else that is still to be done without the
// operator, who decides what is frozen, and what a seller does not show. A purchase is closed
// after its renewal is decided.
const unfinished = `SELECT 'order', id, provider, kind, status || ' ' || state, reason FROM upstream_orders
	WHERE status IN ('planned', 'sent', 'unknown') AND frozen_at = 0
	UNION ALL SELECT 'to close', o.id, o.provider, s.id, s.status || ' ' || o.state, o.reason FROM upstream_orders o JOIN sessions s
	ON s.id = o.session_id WHERE o.status = 'confirmed' AND o.closed_at = 0 AND s.status NOT IN ('creating', 'active')
	AND (o.lost_at = 0 OR o.state = 'gone')
	AND NOT EXISTS (SELECT 1 FROM upstream_orders f WHERE f.session_id = s.id AND f.frozen_at > 0)
	UNION ALL SELECT 'creating', id, provider, type, status, '' FROM sessions WHERE status = 'creating'
	AND NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = sessions.id AND o.frozen_at > 0)
	UNION ALL SELECT 'job', kind, session, '', '', '' FROM test_jobs WHERE kind = 'drive-orders'`

// finish ends the faults and runs the service until nothing changes. Orders that are
// still unknown then are decided by the operator from the sellers' lists.
func (w *world) finish() {
	w.finished = true
	w.injectFaults(w.seed, 0)
	w.stocked()
	w.start(0)
	w.start(1)
	w.settle()
	for _, o := range w.rows(`SELECT id, kind, provider, session_id, reason, quantity FROM upstream_orders WHERE frozen_at > 0 ORDER BY seq`) {
		w.operate(o[0], o[1], o[2])
		w.t.Logf("frozen: %v", o)
	}
	w.settle()
	for range 3 { // what vanished last is noticed by now
		w.clock.Advance(61 * time.Minute)
		w.turn()
	}
	w.giveUp()
}

// giveUp gives up what a seller does not show, as an operator does who asked the seller.
// Where many orders are missing no session ends by itself.
func (w *world) giveUp() {
	for _, o := range w.rows(`SELECT id FROM upstream_orders WHERE status = 'confirmed' AND lost_at > 0 AND closed_at = 0 ORDER BY seq`) {
		w.count("given up by the operator", 1)
		if _, err := w.replicas[0].Desk.Lost(context.Background(), o[0]); err != nil {
			w.t.Errorf("the operator cannot give up %s: %v", o[0], err)
		}
	}
	w.settle()
}

// settle works until nothing is left to be done, for 30 hours at most.
func (w *world) settle() {
	w.cheap.SetWebhook(proxycheap.Never)
	for spent, step := time.Duration(0), 15*time.Second; spent < 30*time.Hour; spent += step {
		if len(w.rows(unfinished)) == 0 {
			return
		}
		step = min(step*5/4, 20*time.Minute)
		w.clock.Advance(step)
		if step >= procurement.RenewalSettleFor {
			w.ps.CompleteRenewals()
		}
		w.turn()
	}
	for _, left := range w.rows(unfinished) {
		w.t.Errorf("left for ever: %v", left)
	}
}

func (w *world) turn() { together([]func(){w.work(0), w.work(1)}) }

// operate decides a frozen order as an operator does who looks at the seller's
// pages.
func (w *world) operate(id, kind, provider string) {
	w.operated[id] = true
	u := w.replicas[0].Desk
	var err error
	sold := w.intents()[id]
	switch {
	case !sold:
		w.count("released by the operator", 1)
		_, err = u.Release(context.Background(), id)
	case kind == "renewal":
		w.count("renewal adopted by the operator", 1)
		if _, err = u.Adopt(context.Background(), id, ""); err != nil { // what it was for is not there any more
			_, err = u.Release(context.Background(), id)
		}
	default:
		w.count("purchase adopted by the operator", 1)
		for ref := range w.sellerRefs(provider) {
			if len(w.rows(`SELECT 1 FROM upstream_orders WHERE provider = ? AND ref = ?`, provider, ref)) == 0 {
				_, err = u.Adopt(context.Background(), id, ref)
				break
			}
		}
	}
	if err != nil {
		w.t.Errorf("the operator cannot decide %s: %v", id, err)
	}
}

// grow lets the term of static sessions end, and checks again.
func (w *world) grow() {
	if w.seed%2 == 0 || w.t.Failed() {
		return
	}
	for range 5 {
		w.clock.Advance(30 * session.Day)
		w.turn()
	}
	w.settle()
	w.check()
}
