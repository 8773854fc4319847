package telemetry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// hosted is an event with a target.
func hosted(id, kind, host string) telemetry.ReportedEvent {
	return telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind, TargetHost: host}}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	expect := func(t *testing.T, id string, reported, observed int64, score int) {
		t.Helper()
		if r, o, s := eventTotals(w, agent, id); r != reported || o != observed || s != score {
			t.Errorf("%d reported, %d observed, score %d; want %d, %d, %d", r, o, s, reported, observed, score)
		}
	}
	t.Run("seen and reported it is one piece, and the report's cost counts", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		w.Clock.Advance(time.Second)
		_, err := w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "Example.COM:443"))
		apptest.OK(t, err)
		expect(t, v.ID, 1, 1, 75)
		w.Clock.Advance(3 * time.Second)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		expect(t, v.ID, 1, 1, 75)
	})
	t.Run("seen alone it counts when it has waited", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		w.Clock.Advance(2 * time.Second)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		expect(t, v.ID, 0, 0, 100)
		w.Clock.Advance(time.Microsecond)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		expect(t, v.ID, 0, 1, 88)
		_, err := w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "timeout", "example.com"))
		apptest.OK(t, err) // too late: two pieces
		expect(t, v.ID, 1, 1, 80)
	})
	t.Run("another host, another session, another agent and a report without outcome claim none", func(t *testing.T) {
		v, other := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		_, err := w.Telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{hosted(v.ID, "block", "example.org"), hosted(v.ID, "block", ""),
			hosted(v.ID, "custom", "example.com"), hosted(other.ID, "block", "example.com")})
		apptest.OK(t, err)
		_, err = w.Telemetry.Report(t.Context(), w.Register(), hosted(v.ID, "block", "example.com"))
		apptest.ErrorIs(t, err, session.ErrNotFound)
		expect(t, v.ID, 3, 0, 55)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		expect(t, v.ID, 3, 1, 54)
		expect(t, other.ID, 1, 0, 75)
	})
	t.Run("one piece is claimed once", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		_, err := w.Telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{hosted(v.ID, "block", "example.com"), hosted(v.ID, "block", "example.com")})
		apptest.OK(t, err)
		expect(t, v.ID, 2, 1, 55)
	})
	t.Run("a claim that the store lost waits again", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		apptest.OK(t, w.Observer.Flush(t.Context())) // the feed is stored, the evidence waits alone
		w.Store.FailUpdates(1)
		_, err := w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		apptest.ErrorIs(t, err, apptest.ErrStore)
		expect(t, v.ID, 0, 0, 100)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		_, err = w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		apptest.OK(t, err)
		expect(t, v.ID, 1, 1, 75)
	})
	t.Run("while a claim is under way the session is forgotten, and it waits again", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", health.Timeout)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		w.Store.FailUpdates(1)
		w.Store.OnFail = func() { apptest.OK(t, w.Observer.Flush(context.Background())) }
		_, err := w.Telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		apptest.ErrorIs(t, err, apptest.ErrStore)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		expect(t, v.ID, 0, 1, 88)
	})
	t.Run("more than the ring holds is observed at once", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		for range 40 {
			w.Observe(v.ID, "example.com", health.Success)
		}
		apptest.OK(t, w.Observer.Flush(t.Context()))
		expect(t, v.ID, 0, 8, 100)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		expect(t, v.ID, 0, 40, 100)
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	t.Run("what the gateway saw can be read", func(t *testing.T) {
		t.Parallel()
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		w.Observe(v.ID, "example.com", "")
		apptest.OK(t, w.Observer.Flush(t.Context()))
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		e := list.Items[0]
		if list.Total != 1 || e.Source.String() != "gateway" || e.Type != "tunnel" || e.TargetHost != "example.com" || e.Bytes != 10 ||
			e.LatencyMS != 5 || e.ExitIP != "10.0.0.1" || !e.At.Equal(w.Clock.Now()) {
			t.Errorf("the feed has %+v", e)
		}
		apptest.OK(t, w.Observer.FlushAll(t.Context())) // clients and hosts are stored later than the feed
		before := w.Dump()
		apptest.OK(t, w.Observer.Flush(t.Context()))
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("a store that fails loses nothing", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.RegisterFunded(1000)
		var ids []string
		for range 300 { // more than one unit takes
			v := w.Buy(agent, apptest.Local)
			ids = append(ids, v.ID)
			w.Observe(v.ID, "example.com", health.Timeout)
		}
		w.Clock.Advance(3 * time.Second)
		w.Store.FailUpdates(2) // the first unit is stored, the second is not
		apptest.ErrorIs(t, w.Observer.Flush(t.Context()), apptest.ErrStore)
		w.Store.FailUpdates(1)
		for _, id := range ids[:100] {
			w.Observe(id, "example.org", health.Timeout)
		}
		apptest.ErrorIs(t, w.Observer.Flush(t.Context()), apptest.ErrStore)
		w.Clock.Advance(3 * time.Second)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		for i, id := range ids {
			want := int64(1)
			if i < 100 {
				want = 2
			}
			if _, observed, _ := eventTotals(w, agent, id); observed != want {
				t.Fatalf("session %d: %d observed, want %d", i, observed, want)
			}
		}
		apptest.Equal(t, "events", w.Column(`SELECT SUM(n) FROM event_chunks`)[0], "400")
		apptest.Equal(t, "scored", w.Column(`SELECT scored FROM counters`)[0], "400")
	})
	t.Run("the feed of a busy session keeps the last things", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		for n := range 10_000 {
			w.Observe(v.ID, fmt.Sprint("host", n), health.Timeout)
		}
		w.Store.FailUpdates(1, 2, 3) // the feed and the hosts, then the feed
		apptest.ErrorIs(t, w.Observer.FlushAll(t.Context()), apptest.ErrStore)
		for n := range 10 {
			w.Observe(v.ID, fmt.Sprint("late", n), health.Timeout)
		}
		apptest.ErrorIs(t, w.Observer.FlushAll(t.Context()), apptest.ErrStore)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		if list.Total != 256 || list.Items[0].TargetHost != "late9" || list.Items[10].TargetHost != "host9999" {
			t.Errorf("%d events, the last %s", list.Total, list.Items[0].TargetHost)
		}
		if _, observed, _ := eventTotals(w, agent, v.ID); observed != 4096 {
			t.Errorf("%d observed", observed)
		}
	})
	t.Run("what was seen of no session does not hold up the others", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		w.Observe("sess_none", "example.com", health.Timeout)
		w.Observe(v.ID, "example.com", health.Timeout)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		if _, observed, _ := eventTotals(w, agent, v.ID); observed != 1 {
			t.Errorf("%d observed", observed)
		}
	})
}

func TestWhatWasSeenAloneCountsForTheRateOfSuccesses(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	for i, kind := range []health.Type{health.Success, health.Timeout} {
		w.Observe(v.ID, "example.com", kind)
		w.Clock.Advance(3 * time.Second)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, "the rate", o.SuccessRate, 1/float64(i+1))
	}
}
