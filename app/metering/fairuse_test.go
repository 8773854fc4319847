package metering_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// limitFairUse sells a static product with another fair use of an IP from now on; 0 is no limit.
func limitFairUse(w *apptest.World, no string, bytes int64) {
	w.T.Helper()
	products := append(w.Embedded.Products(), w.Seller.Products()...)
	i := slices.IndexFunc(products, func(p catalog.Product) bool { return p.No == no })
	products[i].FairUse = bytes
	apptest.OK(w.T, w.Catalog.Replace(products))
}

// buyTwo buys two IPs of a static product for 30 days.
func buyTwo(w *apptest.World, agent, no string) sessions.View {
	w.T.Helper()
	f := apptest.Form(no)
	f.Quantity = new(2)
	d, err := w.Sessions.Create(w.T.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(w.T, err)
	return d.View
}

func renewSession(w *apptest.World, agent, id string) sessions.View {
	w.T.Helper()
	_, err := w.Sessions.Renew(w.T.Context(), sessions.Renew{AgentID: agent, SessionID: id})
	apptest.OK(w.T, err)
	return w.Read(agent, id)
}

// mayConnect reports whether the gateway takes connections of a session.
func mayConnect(w *apptest.World, id string) bool {
	w.T.Helper()
	r, err := w.Traffic.Route(w.T.Context(), id)
	apptest.OK(w.T, err)
	return r.Status == session.Active && !r.UsedUp
}

// A static session of this host or of a seller carries what its fair use allows and not a byte more,
// stays what it was bought for, and carries more once it is renewed.
func TestAStaticSessionCarriesItsFairUse(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Static, apptest.RemoteStatic} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.RegisterWithWebhook()
			_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("100"), "for the test")
			apptest.OK(t, err)
			limitFairUse(w, product, 50_000_000)
			v := buyTwo(w, agent, product)
			apptest.Equal(t, "the fair use of two IPs", v.FairUse, 100_000_000)
			for round := range 2 {
				apptest.Equal(t, "may connect", mayConnect(w, v.ID), true)
				g := drainSession(w, v.ID, fmt.Sprint("r", round), 1)
				apptest.Equal(t, "the outcome", g.Outcome, traffic.Exhausted)
				got := w.Read(agent, v.ID)
				if got.Status != session.Active || got.Usage.Used() != got.FairUse || !got.ExpiresAt.After(v.ActivatedAt) {
					t.Errorf("round %d: %s, used %d of %d", round, got.Status, got.Usage.Used(), got.FairUse)
				}
				g = w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "other", Want: 1})
				apptest.Equal(t, "another replica", g.Outcome, traffic.Exhausted)
				apptest.Equal(t, "granted to it", g.Granted, 0)
				apptest.Equal(t, "may connect when it is used", mayConnect(w, v.ID), false)
				renewed := renewSession(w, agent, v.ID)
				apptest.Equal(t, "with a renewal", renewed.FairUse, got.FairUse+100_000_000)
				apptest.Equal(t, "the days", renewed.ExpiresAt, got.ExpiresAt.Add(30*session.Day))
			}
			low := w.Column(`SELECT type FROM outbox WHERE agent_id = ? AND type = 'session.traffic_low'`, agent)
			apptest.Equal(t, "warnings, at 80 and 95 percent of each", len(low), 4)
		})
	}
}

// Replicas that relay all that they are granted carry exactly the fair use.
func TestReplicasNeverExceedAFairUse(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10)
	limitFairUse(w, apptest.Static, 20_000_000)
	v := buyTwo(w, agent, apptest.Static)
	var relayed atomic.Int64
	var wg sync.WaitGroup
	for replica := range 4 {
		wg.Go(func() {
			lease, used := fmt.Sprint("r", replica), int64(0)
			for moves := 0; moves < 3000; {
				grants, err := w.Traffic.Renew(t.Context(), lease, []traffic.LeaseRequest{{SessionID: v.ID, Lease: lease, Down: used,
					Want: 1 + rand.Int64N(8<<20)}})
				if err != nil {
					t.Error(err)
					return
				}
				if grants[0].Outcome == traffic.Exhausted {
					return
				}
				if grants[0].Granted == used { // another replica has the rest
					runtime.Gosched()
					continue
				}
				relayed.Add(grants[0].Granted - used)
				used, moves = grants[0].Granted, moves+1
			}
			t.Error("it never ended")
		})
	}
	wg.Wait()
	got := w.Read(agent, v.ID)
	if relayed.Load() != 40_000_000 || got.Usage.Used() != 40_000_000 || got.Status != session.Active {
		t.Errorf("relayed %d, used %d, %s", relayed.Load(), got.Usage.Used(), got.Status)
	}
}

// A session keeps what it was bought with until it is renewed; then what its product has that day holds.
func TestFairUseChangesWithARenewal(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	limitFairUse(w, apptest.Static, 0)
	v := buyTwo(w, agent, apptest.Static)
	w.UseBytes(v.ID, "a", 60_000_000)
	limitFairUse(w, apptest.Static, 50_000_000)
	w.UseBytes(v.ID, "b", 60_000_000)
	apptest.Equal(t, "without a limit", w.Read(agent, v.ID).FairUse, 0)
	w.Clock.Advance(15 * session.Day)
	got := renewSession(w, agent, v.ID)
	apptest.Equal(t, "what was used, and 45 days", got.FairUse, 120_000_000+150_000_000)
	limitFairUse(w, apptest.Static, 10_000_000)
	got = renewSession(w, agent, v.ID)
	apptest.Equal(t, "and 30 days of less", got.FairUse, 290_000_000)
	limitFairUse(w, apptest.Static, 0)
	got = renewSession(w, agent, v.ID)
	apptest.Equal(t, "no limit any more", got.FairUse, 0)
}
