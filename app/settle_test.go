package app_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/app/sessions"
	trafficapp "agentproxy/app/traffic"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Whatever the split, the charge is the floor of the total at the price.
func TestChargeIsTheFloorOfTheTotal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100_000)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		v := w.buy(agent, []string{local, remote, local}[n%3])
		lease, g, used := 0, traffic.Grant{}, int64(0)
		var total int64
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := fmt.Sprint(lease)
			want := rapid.Int64Range(0, 40<<20).Draw(r, "want")
			switch rapid.IntRange(0, 5).Draw(r, "what") {
			case 0:
				w.clock.Advance(time.Duration(rapid.IntRange(1, 5400).Draw(r, "seconds")) * time.Second)
				ok(t, w.passes.Settle(t.Context()))
			case 1:
				w.renew(traffic.Ask{SessionID: v.ID, Lease: name, Up: used, Close: true})
				lease, g, used = lease+1, traffic.Grant{}, 0
			case 2:
				w.clock.Advance(time.Hour) // the pass is late
			default:
				if g.Granted > used {
					some := rapid.Int64Range(0, g.Granted-used).Draw(r, "bytes")
					used, total = used+some, total+some
				}
				g = w.renew(traffic.Ask{SessionID: v.ID, Lease: name, Up: used, Want: want})
			}
		}
		if rapid.Bool().Draw(r, "terminate first") {
			_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
		}
		w.renew(traffic.Ask{SessionID: v.ID, Lease: fmt.Sprint(lease), Up: used, Close: true})
		got, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		if got.Usage.Used() != total || got.Cost != (sessions.Cost{Charged: billing.TrafficCharge(total, v.Price)}) {
			r.Fatalf("used %d of %d, cost %+v", got.Usage.Used(), total, got.Cost)
		}
	})
}

// A session that never pauses is charged once an hour all the same, though each
// hour begins before the pass comes.
func TestHourlyCharges(t *testing.T) {
	t.Parallel()
	for name, passFirst := range map[string]bool{"the pass is first": true, "the gateway is first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.rich(100)
			v := w.buy(agent, local)
			used := int64(0)
			w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1 << 20})
			for minute := range 5 * 60 {
				w.clock.Advance(time.Minute)
				if passFirst {
					ok(t, w.passes.Settle(t.Context()))
				}
				used += 100_000
				w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Up: used, Want: 1 << 20})
				if !passFirst {
					ok(t, w.passes.Settle(t.Context()))
				}
				if minute%60 == 59 {
					list, err := w.wallet.Transactions(t.Context(), agent, billing.ChargeEntry, domain.Page{Number: 1, Size: 100})
					ok(t, err)
					same(t, "charges listed", list.Total, minute/60+1)
				}
			}
			same(t, "booked", w.read(agent, v.ID).Money.Charged.Total() > dollars("0.0115"), true)
			w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Up: used, Close: true})
			got, err := w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
			same(t, "charged", got.Cost.Charged, billing.TrafficCharge(used, v.Price))
			list, err := w.wallet.Transactions(t.Context(), agent, billing.ChargeEntry, domain.Page{Number: 1, Size: 100})
			ok(t, err)
			same(t, "charges listed", list.Total, 6)
		})
	}
	t.Run("a quiet session is charged by the pass, and no more", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, local)
		w.use(v.ID, "a", 10_000_000)
		for range 10 {
			w.clock.Advance(20 * time.Minute)
			ok(t, w.passes.Settle(t.Context()))
		}
		same(t, "the ledger", w.entries(agent), "trial_grant 10000000, hold -400000, charge 0 of 4000")
		same(t, "the cost", w.read(agent, v.ID).Cost, sessions.Cost{Charged: dollars("0.004"), Held: dollars("0.396")})
	})
}

func TestRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.timed(agent, local, time.Minute)
	r, err := w.traffic.Route(t.Context(), v.ID)
	ok(t, err)
	if r.SessionID != v.ID || r.AgentID != agent || r.Type != session.Dynamic || r.Status != session.Active || r.Exits[0] != v.Exits[0] ||
		!r.NextAt.Equal(v.Rotation.NextAt) || r.Rotation != 0 {
		t.Errorf("the route is %+v", r)
	}
	fixed := w.buy(agent, static)
	r, err = w.traffic.Route(t.Context(), fixed.ID)
	ok(t, err)
	same(t, "its end", r.ExpiresAt, fixed.ExpiresAt)
	_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	w.clock.Advance(trafficapp.KnowEnded)
	r, err = w.traffic.Route(t.Context(), v.ID)
	ok(t, err)
	if r.Status != session.Terminated || r.Reason != session.AgentRequest {
		t.Errorf("the route is %+v", r)
	}
	w.clock.Advance(time.Microsecond)
	_, err = w.traffic.Route(t.Context(), v.ID)
	refused(t, err, session.ErrNotFound)
	_, err = w.traffic.Route(t.Context(), "sess_none")
	refused(t, err, session.ErrNotFound)
}
