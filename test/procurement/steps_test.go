package procurement_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/proxycheap"
)

// play runs random steps of the agents until they have made a number of creates.
func (w *world) play(creates int) {
	catalogue := products()
	for creates > 0 && !w.t.Failed() {
		n := min(2+w.rng.IntN(8), creates)
		creates -= n
		var acts []func()
		for range n {
			acts = append(acts, w.create(catalogue[w.rng.IntN(len(catalogue))]))
		}
		live := w.rows(`SELECT id, agent_id, type, status FROM sessions WHERE status IN ('creating', 'active') ORDER BY seq`)
		for range min(len(live), 1+w.rng.IntN(6)) {
			s := live[w.rng.IntN(len(live))]
			acts = append(acts, w.touch(s[0], s[1], s[2], s[3]))
		}
		acts = append(acts, w.work(w.rng.IntN(2)))
		w.rng.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		dying := -1
		if w.rng.IntN(6) == 0 {
			dying = w.rng.IntN(2)
			w.replicas[dying].store.die(w.rng.IntN(3 * len(acts)))
		}
		together(acts)
		if dying >= 0 {
			w.count("process died", 1)
			w.start(dying)
		}
		w.happen()
		w.pass()
	}
}

// together does all at the same time.
func together(acts []func()) {
	var wg sync.WaitGroup
	for _, act := range acts {
		wg.Go(act)
	}
	wg.Wait()
}

// create calls create, sometimes several times concurrently with one key.
func (w *world) create(p catalog.Product) func() {
	w.keys++
	key := fmt.Sprintf("key-%d", w.keys)
	in := sessions.Create{AgentID: w.agents[w.rng.IntN(len(w.agents))], Call: idempotency.Call{Key: key, Path: "/v1/sessions", Hash: []byte(key)},
		Form: session.CreateRequest{Type: p.Type, ProductNo: p.No, Location: session.Location{Country: p.Countries[w.rng.IntN(2)]}}}
	if p.Type == session.Static {
		in.Form.Quantity, in.Form.Days = new([]int{1, 1, 1, 2, 3}[w.rng.IntN(5)]), new([]int{30, 90}[w.rng.IntN(2)])
	} else {
		in.Form.Bytes = new(int64(1+w.rng.IntN(2)) * billing.GB)
	}
	calls := 1
	if w.rng.IntN(4) == 0 {
		calls = 2 + w.rng.IntN(2)
		w.count("key repeated", 1)
	}
	at := w.rng.IntN(2)
	return func() {
		var wg sync.WaitGroup
		for n := range calls {
			wg.Go(func() {
				d, err := w.replicas[(at+n)%2].Sessions.Create(context.Background(), in)
				w.recordError(err)
				switch {
				case err == nil && d.Outcome == ports.Pending:
					w.count("created later", 1)
				case err == nil:
					w.count("created", 1)
				case !errors.Is(err, errStore):
					w.count("create refused", 1)
				}
				if err == nil {
					w.mu.Lock()
					if w.answered[key] == nil {
						w.answered[key] = map[string]bool{}
					}
					w.answered[key][d.View.ID] = true
					w.mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

// touch does something with a live session.
func (w *world) touch(id, agent, typ, status string) func() {
	u, choice := w.replicas[w.rng.IntN(2)].Sessions, w.rng.IntN(10)
	w.keys++
	call := idempotency.Call{Key: fmt.Sprintf("key-%d", w.keys), Path: "/v1/sessions/" + id, Hash: []byte(id)}
	days := []string{"", "30", "90"}[w.rng.IntN(3)]
	return func() {
		switch {
		case choice < 3:
			_, err := u.Terminate(context.Background(), agent, id)
			w.recordError(err)
			if err == nil {
				w.count(map[string]string{"creating": "terminated while creating", "active": "terminated"}[status], 1)
			}
		case typ == "static":
			_, err := u.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: id, Days: days, Call: call})
			w.recordError(err)
			w.count("renewal asked", 1)
			if choice < 5 { // and the same again
				_, err = u.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: id, Days: days, Call: call})
				w.recordError(err)
			}
		default:
			_, err := u.Rotate(context.Background(), sessions.Rotate{AgentID: agent, SessionID: id, Call: call})
			w.recordError(err)
			if err == nil {
				w.count("rotated", 1)
			}
		}
	}
}

// work does the jobs that are due, and drives the orders.
func (w *world) work(n int) func() {
	r := w.replicas[n]
	return func() {
		for _, j := range w.rows(`SELECT n, kind, session FROM test_jobs WHERE due <= ? ORDER BY n`, w.clock.Now().UnixMicro()) {
			if j[1] != ports.DriveOrdersJob {
				continue
			}
			if err := r.Driver.DriveSession(context.Background(), j[2]); err != nil {
				w.recordError(err)
				continue
			}
			_, err := w.db.Writer().Exec(`DELETE FROM test_jobs WHERE n = ?`, j[0])
			w.recordError(err)
		}
		w.recordError(r.Driver.DriveDue(context.Background()))
		w.recordError(r.Driver.Recover(context.Background(), time.Minute))
		w.recordError(r.Tasks.ExpireSessions(context.Background()))
		w.recordError(r.Tasks.Settle(context.Background()))
	}
}

// pass advances the clock and runs the passes of both replicas.
func (w *world) pass() {
	d := time.Duration(1+w.rng.IntN(30)) * time.Second
	switch n := w.rng.IntN(20); {
	case n < 5:
		d *= 10
	case n == 5:
		d *= 80
	}
	w.clock.Advance(d)
	if d >= procurement.RenewalSettleFor {
		w.ps.CompleteRenewals()
	}
	w.callbacks()
	together([]func(){w.work(0), w.work(1)})
}

// callbacks delivers the callbacks of a seller once, twice, out of order, unsigned,
// forged, or not at all.
func (w *world) callbacks() {
	w.cheap.SetWebhook([]proxycheap.Mode{proxycheap.Once, proxycheap.Duplicate, proxycheap.OutOfOrder, proxycheap.Unsigned,
		proxycheap.Forged, proxycheap.Never}[w.rng.IntN(6)])
	for _, c := range w.cheap.Callbacks() {
		err := w.replicas[w.rng.IntN(2)].Callbacks.Receive(context.Background(), cheapName, c.Header, c.Body)
		w.recordError(err)
		switch {
		case err == nil:
			w.count("callback taken", 1)
		case errors.Is(err, domain.ErrInvalid):
			w.count("callback refused", 1)
		}
	}
}

// happen makes one of the changes that sellers make by themselves.
func (w *world) happen() {
	w.stocked()
	switch w.rng.IntN(8) {
	case 0:
		w.royal.SetStock(iproyal.Germany, 0)
		w.cheap.SetStock("DE", 0)
		w.count("sold out for a while", 1)
	case 1:
		w.ps.SetStock("USA", 0)
		w.pool.Stock("US", 0, 0)
		w.count("sold out for a while", 1)
	case 2:
		w.vanish()
	case 3:
		for _, r := range w.replicas {
			w.recordError(r.catalog.RefreshStock(context.Background()))
		}
	case 4: // a delivered order is reported as pending once
		for _, o := range w.cheap.Orders() {
			if w.rng.IntN(4) == 0 && o.Proxies[0].Status == proxycheap.Active {
				w.cheap.SetStatus(o.ID, proxycheap.Pending)
			}
		}
	default:
		for _, o := range w.rows(`SELECT o.ref FROM upstream_orders o JOIN sessions s ON s.id = o.session_id WHERE s.product_no = ?
			AND s.status = 'active' AND o.status = 'confirmed' ORDER BY o.seq`, direct) {
			for _, u := range w.royal.SubUsers() {
				if u.Hash == o[0] && u.Available > 0 {
					w.royal.Use(u.Hash, min(u.Available, w.rng.Int64N(billing.GB/2)))
					w.count("direct traffic", 1)
				}
			}
		}
	}
}

// vanish takes something away that a live session has.
func (w *world) vanish() {
	list := w.rows(`SELECT o.provider, o.ref FROM upstream_orders o JOIN sessions s ON s.id = o.session_id WHERE o.kind = 'purchase'
		AND o.status = 'confirmed' AND o.closed_at = 0 AND s.status = 'active' ORDER BY o.seq`)
	if len(list) == 0 {
		return
	}
	o := list[w.rng.IntN(len(list))]
	w.vanished[strings.Join(o, " ")] = true
	switch o[0] {
	case poolName:
		w.pool.Vanish(o[1])
	case royalName:
		w.royal.Vanish(o[1])
	case cheapName:
		w.cheap.Vanish(o[1])
	default:
		w.ps.Vanish(o[1])
	}
	w.count("order vanished", 1)
}
