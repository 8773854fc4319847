package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// hosted is an event with a target.
func hosted(id, kind, host string) telemetry.ReportedEvent {
	return telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind, TargetHost: host}}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	expect := func(t *testing.T, id string, reported, observed int64, score int) {
		t.Helper()
		if r, o, s := w.figures(agent, id); r != reported || o != observed || s != score {
			t.Errorf("%d reported, %d observed, score %d; want %d, %d, %d", r, o, s, reported, observed, score)
		}
	}
	t.Run("seen and reported it is one piece, and the report's cost counts", func(t *testing.T) {
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		w.clock.Advance(time.Second)
		_, err := w.telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "Example.COM:443"))
		ok(t, err)
		expect(t, v.ID, 1, 1, 75)
		w.clock.Advance(3 * time.Second)
		ok(t, w.observer.Flush(t.Context()))
		expect(t, v.ID, 1, 1, 75)
	})
	t.Run("seen alone it counts when it has waited", func(t *testing.T) {
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		w.clock.Advance(2 * time.Second)
		ok(t, w.observer.Flush(t.Context()))
		expect(t, v.ID, 0, 0, 100)
		w.clock.Advance(time.Microsecond)
		ok(t, w.observer.Flush(t.Context()))
		expect(t, v.ID, 0, 1, 88)
		_, err := w.telemetry.Report(t.Context(), agent, hosted(v.ID, "timeout", "example.com"))
		ok(t, err) // too late: two pieces
		expect(t, v.ID, 1, 1, 80)
	})
	t.Run("another host, another session, another agent and what says nothing claim none", func(t *testing.T) {
		v, other := w.buy(agent, local), w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		_, err := w.telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{hosted(v.ID, "block", "example.org"), hosted(v.ID, "block", ""),
			hosted(v.ID, "custom", "example.com"), hosted(other.ID, "block", "example.com")})
		ok(t, err)
		_, err = w.telemetry.Report(t.Context(), w.register(), hosted(v.ID, "block", "example.com"))
		refused(t, err, session.ErrNotFound)
		expect(t, v.ID, 3, 0, 55)
		ok(t, w.observer.FlushAll(t.Context()))
		expect(t, v.ID, 3, 1, 54)
		expect(t, other.ID, 1, 0, 75)
	})
	t.Run("one piece is claimed once", func(t *testing.T) {
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		_, err := w.telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{hosted(v.ID, "block", "example.com"), hosted(v.ID, "block", "example.com")})
		ok(t, err)
		expect(t, v.ID, 2, 1, 55)
	})
	t.Run("a claim that the store lost waits again", func(t *testing.T) {
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		ok(t, w.observer.Flush(t.Context())) // the feed is stored, the evidence waits alone
		w.store.failUpdates(1)
		_, err := w.telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		refused(t, err, errStore)
		expect(t, v.ID, 0, 0, 100)
		ok(t, w.observer.Flush(t.Context()))
		_, err = w.telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		ok(t, err)
		expect(t, v.ID, 1, 1, 75)
	})
	t.Run("while a claim is under way the session is forgotten, and it waits again", func(t *testing.T) {
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", health.Timeout)
		ok(t, w.observer.Flush(t.Context()))
		w.store.failUpdates(1)
		w.store.onFail = func() { ok(t, w.observer.Flush(context.Background())) }
		_, err := w.telemetry.Report(t.Context(), agent, hosted(v.ID, "block", "example.com"))
		refused(t, err, errStore)
		ok(t, w.observer.FlushAll(t.Context()))
		expect(t, v.ID, 0, 1, 88)
	})
	t.Run("more than the ring holds is observed at once", func(t *testing.T) {
		v := w.buy(agent, local)
		for range 40 {
			w.saw(v.ID, "example.com", health.Success)
		}
		ok(t, w.observer.Flush(t.Context()))
		expect(t, v.ID, 0, 8, 100)
		ok(t, w.observer.FlushAll(t.Context()))
		expect(t, v.ID, 0, 40, 100)
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	t.Run("what the gateway saw can be read", func(t *testing.T) {
		t.Parallel()
		w := open(t, setup{unruly: true})
		agent := w.register()
		v := w.buy(agent, local)
		w.saw(v.ID, "example.com", "")
		ok(t, w.observer.Flush(t.Context()))
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		e := list.Items[0]
		if list.Total != 1 || e.Source.String() != "gateway" || e.Type != "tunnel" || e.TargetHost != "example.com" || e.Bytes != 10 ||
			e.LatencyMS != 5 || e.ExitIP != "10.0.0.1" || !e.At.Equal(w.clock.Now()) {
			t.Errorf("the feed has %+v", e)
		}
		before := w.dump()
		ok(t, w.observer.Flush(t.Context()))
		ok(t, w.observer.FlushAll(t.Context()))
		same(t, "the database", w.dump(), before)
	})
	t.Run("a store that fails loses nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.rich(1000)
		var ids []string
		for range 300 { // more than one unit takes
			v := w.buy(agent, local)
			ids = append(ids, v.ID)
			w.saw(v.ID, "example.com", health.Timeout)
		}
		w.clock.Advance(3 * time.Second)
		w.store.failUpdates(2) // the first unit is stored, the second is not
		refused(t, w.observer.Flush(t.Context()), errStore)
		w.store.failUpdates(1)
		for _, id := range ids[:100] {
			w.saw(id, "example.org", health.Timeout)
		}
		refused(t, w.observer.Flush(t.Context()), errStore)
		w.clock.Advance(3 * time.Second)
		ok(t, w.observer.Flush(t.Context()))
		for i, id := range ids {
			want := int64(1)
			if i < 100 {
				want = 2
			}
			if _, observed, _ := w.figures(agent, id); observed != want {
				t.Fatalf("session %d: %d observed, want %d", i, observed, want)
			}
		}
		same(t, "events", w.texts(`SELECT SUM(n) FROM event_chunks`)[0], "400")
		same(t, "scored", w.texts(`SELECT scored FROM counters`)[0], "400")
	})
	t.Run("the feed of a busy session keeps the last things", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, local)
		for n := range 10_000 {
			w.saw(v.ID, fmt.Sprint("host", n), health.Timeout)
		}
		w.store.failUpdates(1, 2)
		refused(t, w.observer.FlushAll(t.Context()), errStore)
		for n := range 10 {
			w.saw(v.ID, fmt.Sprint("late", n), health.Timeout)
		}
		refused(t, w.observer.FlushAll(t.Context()), errStore)
		ok(t, w.observer.FlushAll(t.Context()))
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		if list.Total != 256 || list.Items[0].TargetHost != "late9" || list.Items[10].TargetHost != "host9999" {
			t.Errorf("%d events, the last %s", list.Total, list.Items[0].TargetHost)
		}
		if _, observed, _ := w.figures(agent, v.ID); observed != 4096 {
			t.Errorf("%d observed", observed)
		}
	})
	t.Run("what was seen of no session does not hold up the others", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, local)
		w.saw("sess_none", "example.com", health.Timeout)
		w.saw(v.ID, "example.com", health.Timeout)
		ok(t, w.observer.FlushAll(t.Context()))
		if _, observed, _ := w.figures(agent, v.ID); observed != 1 {
			t.Errorf("%d observed", observed)
		}
	})
}
