package metering_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// autoSession is one of 0.1 GB at 0.40 a GB that adds 0.1 GB below a part of it, whatever a GB costs.
func autoSession(w *apptest.World, agent string, percent, perDay int) sessions.View {
	w.T.Helper()
	f := apptest.Form(apptest.Local)
	f.Bytes = apptest.Gigabytes("0.1")
	f.AutoTopUp = &session.AutoTopUp{BelowPercent: percent, Bytes: 100_000_000, MaxPerDay: perDay,
		MaxPrice: apptest.Dollars("1000")}
	d, err := w.Sessions.Create(w.T.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(w.T, err)
	return d.View
}

// newsOf lists the webhook events and the feed of a session about additions.
func newsOf(w *apptest.World, agent, id string) (hooks, feed string) {
	w.T.Helper()
	list := w.Column(`SELECT type FROM outbox WHERE agent_id = ? AND type LIKE 'session.top%' ORDER BY seq`, agent)
	events, err := w.Sessions.Events(w.T.Context(), agent, id, domain.Page{Number: 1, Size: 100})
	apptest.OK(w.T, err)
	var lines []string
	for _, e := range events.Items {
		if strings.HasPrefix(e.Type, "top") {
			lines = append(lines, strings.TrimSpace(e.Type+" "+e.Code))
		}
	}
	return strings.Join(list, ", "), strings.Join(lines, ", ")
}

func TestAutoTopUp(t *testing.T) {
	t.Parallel()
	t.Run("it buys once below its share, whichever unit is repeated, and no more than a day allows", func(t *testing.T) {
		t.Parallel()
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.RegisterWithWebhook()
		v := autoSession(w, agent, 20, 2)
		w.UseBytes(v.ID, "a", 80_000_000)
		apptest.Equal(t, "at its share", w.Read(agent, v.ID).Bytes, 100_000_000)
		w.UseBytes(v.ID, "b", 1_000_000)
		apptest.Equal(t, "below it", w.Read(agent, v.ID).Bytes, 200_000_000)
		for range 3 {
			w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "c", Want: 1000})
		}
		w.UseBytes(v.ID, "d", 119_000_000) // everything, which buys more instead of ending it
		got := w.Read(agent, v.ID)
		if got.Bytes != 300_000_000 || got.Status != session.Active || got.Usage.Used() != 200_000_000 {
			t.Errorf("%s with %d of %d bytes", got.Status, got.Usage.Used(), got.Bytes)
		}
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "c", Close: true})
		w.UseBytes(v.ID, "e", 70_000_000)
		w.UseBytes(v.ID, "f", 1_000_000)
		hooks, feed := newsOf(w, agent, v.ID)
		apptest.Equal(t, "events", hooks, "session.topped_up, session.topped_up, session.top_up_failed")
		apptest.Equal(t, "the feed", feed, "top_up_failed MAX_PER_DAY, topped_up, topped_up")
		w.Clock.Advance(24 * time.Hour)
		w.UseBytes(v.ID, "g", 1_000_000)
		got = w.Read(agent, v.ID)
		apptest.Equal(t, "on the next day", got.Bytes, 400_000_000)
		apptest.Equal(t, "what is refused", got.TopUps.Failed, "")
	})
	t.Run("one that is refused is reported once, and what is left is used", func(t *testing.T) {
		t.Parallel()
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true, TrialBalance: apptest.Dollars("0.05")})
		agent := w.RegisterWithWebhook()
		v := autoSession(w, agent, 50, 5)
		for i := range 9 {
			w.UseBytes(v.ID, fmt.Sprint("l", i), 10_000_000)
			w.Clock.Advance(time.Minute)
		}
		got := w.Read(agent, v.ID)
		if got.Bytes != 100_000_000 || got.Status != session.Active || got.TopUps.Failed != "INSUFFICIENT_BALANCE" {
			t.Errorf("%s with %d bytes, %q", got.Status, got.Bytes, got.TopUps.Failed)
		}
		hooks, feed := newsOf(w, agent, v.ID)
		apptest.Equal(t, "events", hooks, "session.top_up_failed")
		apptest.Equal(t, "the feed", feed, "top_up_failed INSUFFICIENT_BALANCE")
		_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("5"), "for the test")
		apptest.OK(t, err)
		w.UseBytes(v.ID, "z", 1_000_000)
		apptest.Equal(t, "with money", w.Read(agent, v.ID).Bytes, 200_000_000)
	})
	t.Run("the budget holds for it, and without it the session ends", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := autoSession(w, agent, 50, 5)
		w.SetBudget(agent, "0.05", "10", false)
		g := drainSession(w, v.ID, "a", 1)
		got := w.Read(agent, v.ID)
		if g.Outcome != traffic.Exhausted || got.Status != session.Expired || got.TopUps.Failed != "BUDGET_EXCEEDED" || got.Bytes != 100_000_000 {
			t.Errorf("%+v, %s with %d bytes, %q", g, got.Status, got.Bytes, got.TopUps.Failed)
		}
	})
	t.Run("a unit that is lost buys nothing, and its repetition once", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := autoSession(w, agent, 90, 5)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 20_000_000})
		request := traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: 20_000_000, Want: 1000}
		w.Store.FailUpdates(1)
		_, err := w.Traffic.Renew(t.Context(), "r", []traffic.LeaseRequest{request})
		apptest.ErrorIs(t, err, apptest.ErrStore)
		apptest.Equal(t, "bytes", w.Read(agent, v.ID).Bytes, 100_000_000)
		for range 3 {
			w.RenewLease(request)
		}
		apptest.Equal(t, "bytes after it", w.Read(agent, v.ID).Bytes, 200_000_000)
	})
}

// A price that has risen is not paid unless that was allowed.
func TestAnAdditionPaysNoPriceThatHasRisen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, highest string // the price, and max_price_per_gb
		bytes        int64
		refused      string
	}{
		{"0.4", "", 200_000_000, ""},
		{"0.3", "", 200_000_000, ""},
		{"0.400001", "", 100_000_000, "PRICE_MISMATCH"},
		{"40", "", 100_000_000, "PRICE_MISMATCH"},
		{"0.5", "0.5", 200_000_000, ""},
		{"0.500001", "0.5", 100_000_000, "PRICE_MISMATCH"},
		{"0.4", "0.399999", 100_000_000, "PRICE_MISMATCH"},
	} {
		w := apptest.New(t)
		agent := w.RegisterWithWebhook()
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("0.1")
		f.AutoTopUp = &session.AutoTopUp{BelowPercent: 50, Bytes: 100_000_000, MaxPerDay: 1}
		if c.highest != "" {
			f.AutoTopUp.MaxPrice = apptest.Dollars(c.highest)
		}
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		w.Reprice(apptest.Local, apptest.Dollars(c.now))
		w.UseBytes(d.View.ID, "a", 60_000_000)
		got := w.Read(agent, d.View.ID)
		if got.Bytes != c.bytes || got.TopUps.Failed != c.refused {
			t.Errorf("%s at most %q: %d bytes, %q", c.now, c.highest, got.Bytes, got.TopUps.Failed)
		}
	}
}

// Replicas that use all that they are granted buy as often as a day allows, and use exactly that.
func TestReplicasTopUpExactly(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := autoSession(w, agent, 99, 3)
	var relayed atomic.Int64
	var wg sync.WaitGroup
	for replica := range 2 {
		wg.Go(func() {
			lease, used := fmt.Sprint("r", replica), int64(0)
			for moves := 0; moves < 3000; {
				grants, err := w.Traffic.Renew(t.Context(), lease, []traffic.LeaseRequest{{SessionID: v.ID, Lease: lease, Up: used,
					Want: 1 + rand.Int64N(8<<20)}})
				if err != nil {
					t.Error(err)
					return
				}
				g := grants[0]
				if g.Outcome == traffic.Exhausted || g.Outcome == traffic.Over {
					return
				}
				some := rand.Int64N(g.Granted - used + 1)
				if g.Granted-used < 1<<16 {
					some = g.Granted - used
				}
				if some == 0 { // another replica has the rest
					runtime.Gosched()
					continue
				}
				used, moves = used+some, moves+1
				relayed.Add(some)
			}
			t.Error("it never ended")
		})
	}
	wg.Wait()
	got := w.Read(agent, v.ID)
	if relayed.Load() != 400_000_000 || got.Usage.Used() != 400_000_000 || got.Status != session.Expired {
		t.Errorf("relayed %d, used %d, %s", relayed.Load(), got.Usage.Used(), got.Status)
	}
	apptest.Equal(t, "charged", got.Cost.Charged, apptest.Dollars("0.16"))
}
