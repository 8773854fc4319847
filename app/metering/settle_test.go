package metering_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/app/metering"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// Whatever the split, the charge is the floor of the total at the price.
func TestChargeIsTheFloorOfTheTotal(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100_000)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		v := w.Buy(agent, []string{apptest.Local, apptest.Remote, apptest.Local}[n%3])
		lease, g, used := 0, traffic.Grant{}, int64(0)
		var total int64
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := fmt.Sprint(lease)
			want := rapid.Int64Range(0, 40<<20).Draw(r, "want")
			switch rapid.IntRange(0, 5).Draw(r, "what") {
			case 0:
				w.Clock.Advance(time.Duration(rapid.IntRange(1, 5400).Draw(r, "seconds")) * time.Second)
				apptest.OK(t, w.Tasks.Settle(t.Context()))
			case 1:
				w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: name, Up: used, Close: true})
				lease, g, used = lease+1, traffic.Grant{}, 0
			case 2:
				w.Clock.Advance(time.Hour) // the pass is late
			default:
				if g.Granted > used {
					some := rapid.Int64Range(0, g.Granted-used).Draw(r, "bytes")
					used, total = used+some, total+some
				}
				g = w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: name, Up: used, Want: want})
			}
		}
		if rapid.Bool().Draw(r, "terminate first") {
			_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
		}
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: fmt.Sprint(lease), Up: used, Close: true})
		got, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
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
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.RegisterFunded(100)
			v := w.Buy(agent, apptest.Local)
			used := int64(0)
			w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1 << 20})
			for minute := range 5 * 60 {
				w.Clock.Advance(time.Minute)
				if passFirst {
					apptest.OK(t, w.Tasks.Settle(t.Context()))
				}
				used += 100_000
				w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: used, Want: 1 << 20})
				if !passFirst {
					apptest.OK(t, w.Tasks.Settle(t.Context()))
				}
				if minute%60 == 59 {
					list, err := w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{Type: billing.ChargeEntry}, domain.Page{Number: 1, Size: 100})
					apptest.OK(t, err)
					apptest.Equal(t, "charges listed", list.Total, minute/60+1)
				}
			}
			apptest.Equal(t, "booked", w.Read(agent, v.ID).Money.Charged.Total() > apptest.Dollars("0.0115"), true)
			w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: used, Close: true})
			got, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
			apptest.Equal(t, "charged", got.Cost.Charged, billing.TrafficCharge(used, v.Price))
			list, err := w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{Type: billing.ChargeEntry}, domain.Page{Number: 1, Size: 100})
			apptest.OK(t, err)
			apptest.Equal(t, "charges listed", list.Total, 6)
		})
	}
	t.Run("a quiet session is charged by the pass, and no more", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		w.UseBytes(v.ID, "a", 10_000_000)
		for range 10 {
			w.Clock.Advance(20 * time.Minute)
			apptest.OK(t, w.Tasks.Settle(t.Context()))
		}
		apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, hold -400000, charge 0 of 4000")
		apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("0.004"), Held: apptest.Dollars("0.396")})
	})
}

// Traffic that is reported with the time of an hour that is settled is charged nevertheless: with the next hour.
func TestTrafficOfASettledHourIsSettled(t *testing.T) {
	t.Parallel()
	reports := map[string]func(w *apptest.World, id string, bytes int64){
		"a lease": func(w *apptest.World, id string, bytes int64) {
			w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Up: bytes, Want: 200_000_000})
		},
		"what a seller counts": func(w *apptest.World, id string, bytes int64) {
			apptest.OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				s, err := tx.Sessions().Load(ctx, id)
				if err != nil {
					return err
				}
				return w.Transitions.RecordUsage(ctx, tx, s, bytes, w.Clock.Now())
			}))
		},
	}
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			id := w.Buy(agent, apptest.Local).ID
			w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Want: 200_000_000})
			report(w, id, 50_000_000)
			w.Clock.Advance(w.Clock.Now().Truncate(time.Hour).Add(time.Hour).Sub(w.Clock.Now()))
			apptest.OK(t, w.Tasks.Settle(t.Context()))
			apptest.Equal(t, "charged", w.Read(agent, id).Money.Charged.Total(), apptest.Dollars("0.02"))
			w.Clock.Advance(-time.Second)
			report(w, id, 100_000_000)
			b, err := w.Wallet.Balance(t.Context(), agent)
			apptest.OK(t, err)
			apptest.Equal(t, "spent", b.Spent, apptest.Dollars("0.04"))
			w.Clock.Advance(time.Hour + time.Second)
			apptest.OK(t, w.Tasks.Settle(t.Context()))
			apptest.Equal(t, "charged an hour later", w.Read(agent, id).Money.Charged.Total(), apptest.Dollars("0.04"))
		})
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.BuyTimed(agent, apptest.Local, time.Minute)
	r, err := w.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	if r.SessionID != v.ID || r.AgentID != agent || r.Type != session.Dynamic || r.Status != session.Active || r.Exits[0] != v.Exits[0] ||
		!r.NextAt.Equal(v.Rotation.NextAt) || r.Rotation != 0 {
		t.Errorf("the route is %+v", r)
	}
	fixed := w.Buy(agent, apptest.Static)
	r, err = w.Traffic.Route(t.Context(), fixed.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "its end", r.ExpiresAt, fixed.ExpiresAt)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	w.Clock.Advance(metering.KeepEnded)
	r, err = w.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	if r.Status != session.Terminated || r.Reason != session.AgentRequest {
		t.Errorf("the route is %+v", r)
	}
	w.Clock.Advance(time.Microsecond)
	_, err = w.Traffic.Route(t.Context(), v.ID)
	apptest.ErrorIs(t, err, session.ErrNotFound)
	_, err = w.Traffic.Route(t.Context(), "sess_none")
	apptest.ErrorIs(t, err, session.ErrNotFound)
}
