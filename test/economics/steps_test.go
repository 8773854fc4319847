package economics_test

import (
	"context"
	"fmt"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// step is something that happens, by its weight.
type step struct {
	weight int
	do     func(w *world)
}

var steps = []step{
	{8, (*world).buy}, {2, (*world).terminate}, {4, (*world).renew}, {5, (*world).browse}, {6, (*world).work}, {6, (*world).wait},
	{2, (*world).change}, {2, (*world).vanish}, {1, (*world).fault}, {1, (*world).compare}, {1, (*world).month},
}

// play plays a number of steps.
func (w *world) play(n int) {
	for range n {
		w.pick(steps).do(w)
	}
}

func (w *world) pick(list []step) step {
	all := 0
	for _, s := range list {
		all += s.weight
	}
	at := w.rng.IntN(all)
	for _, s := range list {
		if at -= s.weight; at < 0 {
			return s
		}
	}
	panic("unreachable")
}

// meanwhile is what may happen while a call of a seller is on its way.
var meanwhile = []step{{3, (*world).terminate}, {3, (*world).work}, {2, (*world).renew}, {1, (*world).change}, {1, (*world).compare}}

// during lets something happen in the middle of a call, which then takes longer.
func (w *world) during(money bool) {
	if w.depth > 0 {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	most := 25
	if money {
		most = 120
	}
	w.Clock.Advance(time.Duration(w.rng.IntN(most)) * time.Second / 2)
	w.pick(meanwhile).do(w)
	w.add("something happened during a call")
}

func (w *world) call() idempotency.Call {
	w.keys++
	key := fmt.Sprint("key-", w.keys)
	return idempotency.Call{Key: key, Path: "/v1/sessions", Hash: []byte(key)}
}

func (w *world) buy() {
	list := products()
	p := list[w.rng.IntN(len(list))]
	f := apptest.Form(p.No)
	f.Type = p.Type
	if p.Type == session.Static {
		quantity, days := 1+w.rng.IntN(3), []int{30, 30, 90}[w.rng.IntN(3)]
		f.Quantity, f.Days, f.Bytes = &quantity, &days, nil
	} else {
		bytes := int64(1+w.rng.IntN(3)) * billing.GB
		f.Bytes, f.Quantity, f.Days = &bytes, nil, nil
	}
	agent := w.agents[w.rng.IntN(len(w.agents))]
	d, err := w.replica().Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f, Call: w.call()})
	switch {
	case err != nil:
		w.add("create refused")
		w.log.Info("create", "err", err)
	case d.Outcome == ports.Pending:
		w.add("created later")
	default:
		w.add("created")
	}
}

// live returns the ids and agents of sessions that a condition selects.
func (w *world) live(where string) (id, agent string, ok bool) {
	list := w.Column(`SELECT id || ' ' || agent_id FROM sessions WHERE ` + where + ` ORDER BY seq`)
	if len(list) == 0 {
		return "", "", false
	}
	_, err := fmt.Sscan(list[w.rng.IntN(len(list))], &id, &agent)
	apptest.OK(w.t, err)
	return id, agent, true
}

func (w *world) terminate() {
	id, agent, ok := w.live(`status IN ('creating', 'active')`)
	if !ok {
		return
	}
	if _, err := w.replica().Sessions.Terminate(context.Background(), agent, id); err == nil {
		w.add("terminated")
	}
}

func (w *world) renew() {
	id, agent, ok := w.live(`status = 'active' AND type = 'static'`)
	if !ok {
		return
	}
	days := []string{"", "30", "90"}[w.rng.IntN(3)]
	if _, err := w.replica().Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: id, Days: days, Call: w.call()}); err == nil {
		w.add("renewal answered")
	}
}

// browse lets traffic through dynamic sessions: past the service for direct ones.
func (w *world) browse() {
	bytes := w.rng.Int64N(billing.GB)
	if id, _, ok := w.live(`status = 'active' AND product_no = '` + direct + `'`); ok {
		if b := w.soldTo(id); b != nil {
			b.use(bytes, w.Clock.Now())
			w.add("direct traffic")
		}
	}
	id, _, ok := w.live(`status = 'active' AND product_no = '` + metered + `'`)
	if !ok {
		return
	}
	w.keys++
	ask := traffic.LeaseRequest{SessionID: id, Lease: fmt.Sprint("lse-", w.keys), Want: bytes}
	ctx, r := context.Background(), w.replica()
	grants, err := r.Traffic.Renew(ctx, "replica", []traffic.LeaseRequest{ask})
	if err != nil || len(grants) != 1 || grants[0].Outcome != traffic.Open {
		return
	}
	ask.Down, ask.Want, ask.Close = min(bytes, grants[0].Granted), 0, true
	if b := w.soldTo(id); b != nil {
		b.use(ask.Down, w.Clock.Now())
	}
	w.add("metered traffic")
	if _, err = r.Traffic.Renew(ctx, "replica", []traffic.LeaseRequest{ask}); err != nil { // repeated as a gateway does
		_, err = r.Traffic.Renew(ctx, "replica", []traffic.LeaseRequest{ask})
		apptest.OK(w.t, err)
	}
}

// soldTo returns what was sold for a session, or nil.
func (w *world) soldTo(id string) *sale {
	refs := w.Column(`SELECT provider || ' ' || ref FROM upstream_orders WHERE session_id = ? AND kind = 'purchase' AND status = 'confirmed'`, id)
	if len(refs) == 0 {
		return nil
	}
	var provider, ref string
	_, err := fmt.Sscan(refs[0], &provider, &ref)
	apptest.OK(w.t, err)
	for _, b := range w.shop(provider).book {
		if b.ref == ref {
			return b
		}
	}
	return nil
}

func (w *world) work() { w.drive(w.replica()) }

func (w *world) compare() { w.reconciled(w.replica()) }

func (w *world) wait() {
	w.Clock.Advance(time.Duration(1+w.rng.IntN(90)) * []time.Duration{time.Second, time.Second, time.Minute}[w.rng.IntN(3)])
	w.drive(w.replica())
}

// month passes the ends of static sessions. What was begun is given the minutes that it takes before
// days pass between two looks.
func (w *world) month() {
	for range 12 {
		w.Clock.Advance(30 * time.Second)
		w.drive(w.replica())
	}
	for range 30 {
		w.Clock.Advance(session.Day)
		w.drive(w.replica())
	}
	w.add("a month passed")
}

// change changes what a shop sells, and for how much.
func (w *world) change() {
	s := w.shops[w.rng.IntN(len(w.shops))]
	switch w.rng.IntN(4) {
	case 0:
		s.soldOut = !s.soldOut
	case 1:
		s.closed = w.Clock.Now().Add(time.Duration(w.rng.IntN(600)) * time.Minute)
	default:
		s.price = []int{60, 100, 140, 170, 250, 900}[w.rng.IntN(6)]
	}
}

// lost is the time that a sale may be hidden without a consequence: it is read once an
// hour, and missed for two.
const lost = 2 * time.Hour

// vanish hides a sale, or all of them, for a while or for good.
func (w *world) vanish() {
	s, now := w.shops[w.rng.IntN(len(w.shops))], w.Clock.Now()
	until := now.Add(time.Duration(1+w.rng.IntN(500)) * time.Minute)
	if w.rng.IntN(3) == 0 {
		s.empty = until
		w.add("list empty")
		for _, b := range s.book {
			b.broken = b.broken || until.Sub(now) >= lost
		}
		return
	}
	if len(s.book) == 0 {
		return
	}
	b := s.book[w.rng.IntN(len(s.book))]
	if w.rng.IntN(3) == 0 {
		until = now.Add(never)
	}
	b.hidden = until
	b.broken = b.broken || until.Sub(now) >= lost
	w.add("order hidden")
}

// fault lets one of the next transactions of a replica fail.
func (w *world) fault() {
	w.replica().store.FailUpdates(1 + w.rng.IntN(6))
	w.add("transaction failed")
}
