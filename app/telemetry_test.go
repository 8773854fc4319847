package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

func event(id, kind string) telemetry.ReportedEvent {
	return telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind}}
}

func TestReport(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	v := w.buy(agent, local)
	t.Run("the answer is the health after it", func(t *testing.T) {
		latency, status, before := 120, 403, w.clock.Now().Add(-time.Hour)
		r, err := w.telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: v.ID, Report: health.Report{Type: "http_error",
			StatusCode: &status, LatencyMS: &latency, TargetHost: "Example.com:443", ErrorMessage: "<b>no</b>", OccurredAt: &before}})
		ok(t, err)
		if !strings.HasPrefix(r.EventID, "evt_") || r.Verdict.HealthScore != 78 || r.Verdict.SuccessRate != 0 {
			t.Errorf("answered %+v", r)
		}
		h, err := w.telemetry.Health(t.Context(), agent, v.ID)
		ok(t, err)
		same(t, "the health", h.Verdict, r.Verdict)
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		e := list.Items[0]
		if list.Total != 1 || e.ID != r.EventID || e.Type != "http_error" || e.StatusCode != 403 || e.LatencyMS != 120 || e.Source.String() != "agent" ||
			e.TargetHost != "Example.com:443" || e.Message != "<b>no</b>" || !e.OccurredAt.Equal(before) || !e.At.Equal(w.clock.Now()) {
			t.Errorf("the feed has %+v", e)
		}
		o, err := w.stats.Overview(t.Context(), agent)
		ok(t, err)
		if o.EventsReported != 1 || o.SuccessRate != 0 {
			t.Errorf("the overview is %+v", o)
		}
	})
	t.Run("a session that is creating takes it", func(t *testing.T) {
		later := w.buy(agent, localLater)
		same(t, "the score", w.report(agent, later.ID, "block").Verdict.HealthScore, 75)
		ok(t, w.work())
		same(t, "the score", w.read(agent, later.ID).Verdict.HealthScore, 75)
	})
	t.Run("one that ended, one of another and one that is not there refuse it", func(t *testing.T) {
		over := w.buy(agent, local)
		_, err := w.sessions.Terminate(t.Context(), agent, over.ID)
		ok(t, err)
		before := w.dump()
		_, err = w.telemetry.Report(t.Context(), agent, event(over.ID, "success"))
		refused(t, err, session.ErrOver)
		_, err = w.telemetry.Report(t.Context(), w.other(), event(v.ID, "success"))
		refused(t, err, session.ErrNotFound)
		_, err = w.telemetry.Report(t.Context(), agent, event("sess_none", "success"))
		refused(t, err, session.ErrNotFound)
		same(t, "the database", w.dump(), before)
		_, err = w.telemetry.Health(t.Context(), agent, over.ID)
		ok(t, err)
	})
	t.Run("a malformed one is refused with its fields", func(t *testing.T) {
		bad := -1
		before := w.dump()
		_, err := w.telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: v.ID, Report: health.Report{Type: "fine", LatencyMS: &bad}})
		refused(t, err, domain.ErrInvalid)
		same(t, "fields", fieldsOf(err), "event_type, latency_ms")
		same(t, "the database", w.dump(), before)
	})
	t.Run("of 200 reports in a minute 120 are scored", func(t *testing.T) {
		v := w.buy(agent, local)
		before, err := w.stats.Overview(t.Context(), agent)
		ok(t, err)
		for range 200 {
			w.report(agent, v.ID, "success")
		}
		w.report(agent, v.ID, "block")
		same(t, "the score", w.read(agent, v.ID).Verdict.HealthScore, 100)
		o, err := w.stats.Overview(t.Context(), agent)
		ok(t, err)
		same(t, "reported", o.EventsReported-before.EventsReported, 201)
		same(t, "scored", w.texts(`SELECT scored FROM counters WHERE agent_id = ?`, agent)[0], fmt.Sprint(120+2))
	})
}

// other is an agent who was there before.
func (w *world) other() string {
	return w.texts(`SELECT id FROM agents ORDER BY seq DESC LIMIT 1`)[0] + "x"
}

func fieldsOf(err error) string {
	var e *domain.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	var names []string
	issues, _ := e.Details["fields"].([]domain.FieldIssue)
	for _, issue := range issues {
		names = append(names, issue.Field)
	}
	return strings.Join(names, ", ")
}

func TestBatch(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent, foreign := w.register(), w.register()
	a, b, over := w.buy(agent, local), w.buy(agent, local), w.buy(agent, local)
	alien := w.buy(foreign, local)
	_, err := w.sessions.Terminate(t.Context(), agent, over.ID)
	ok(t, err)
	t.Run("what is well-formed is judged alone", func(t *testing.T) {
		results, err := w.telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "success"), event(alien.ID, "success"),
			event("sess_none", "success"), event(over.ID, "success"), event(b.ID, "block"), event(a.ID, "success")})
		ok(t, err)
		want := []error{nil, session.ErrNotFound, session.ErrNotFound, session.ErrOver, nil, nil}
		for i, r := range results {
			if r.Err == nil != (want[i] == nil) || r.Err != nil && !r.Err.Is(want[i]) {
				t.Errorf("event %d of %s: %v, want %v", i, r.SessionID, r.Err, want[i])
			}
		}
		for id, n := range map[string]int64{a.ID: 2, b.ID: 1, over.ID: 0, alien.ID: 0} {
			s := w.read(map[bool]string{true: foreign, false: agent}[id == alien.ID], id).Health
			same(t, "counted for "+id, s.Stats().Session.Reported.TotalEvents, n)
		}
		o, err := w.stats.Overview(t.Context(), agent)
		ok(t, err)
		if o.EventsReported != 3 || o.SuccessRate != 2.0/3 {
			t.Errorf("the overview is %+v", o)
		}
		list, err := w.sessions.Events(t.Context(), agent, a.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		same(t, "in the feed", list.Total, 2)
	})
	t.Run("one that is malformed refuses all, and names itself", func(t *testing.T) {
		status := 600
		before := w.dump()
		_, err := w.telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "success"), event("", "success"), event(a.ID, ""),
			{SessionID: a.ID, Report: health.Report{Type: "success", StatusCode: &status}}})
		refused(t, err, domain.ErrInvalid)
		same(t, "fields", fieldsOf(err), "events[1].session_id, events[2].event_type, events[3].status_code")
		same(t, "the database", w.dump(), before)
	})
	t.Run("it has 1 to 1000 events", func(t *testing.T) {
		for _, n := range []int{0, 1001} {
			_, err := w.telemetry.Batch(t.Context(), agent, make([]telemetry.ReportedEvent, n))
			refused(t, err, domain.ErrInvalid)
			same(t, "fields", fieldsOf(err), "events")
		}
		many := make([]telemetry.ReportedEvent, telemetry.MaxBatch)
		for i := range many {
			many[i] = event(b.ID, "custom")
		}
		results, err := w.telemetry.Batch(t.Context(), agent, many)
		ok(t, err)
		same(t, "answered", len(results), 1000)
		list, err := w.sessions.Events(t.Context(), agent, b.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		same(t, "in the feed", list.Total, 1001)
	})
	t.Run("the list of faults is bounded", func(t *testing.T) {
		_, err := w.telemetry.Batch(t.Context(), agent, make([]telemetry.ReportedEvent, 1000))
		refused(t, err, domain.ErrInvalid)
		if n := len(strings.Split(fieldsOf(err), ", ")); n < 50 || n > 60 {
			t.Errorf("%d faults are listed", n)
		}
	})
	t.Run("a store that fails records nothing", func(t *testing.T) {
		before := w.dump()
		w.store.failUpdates(1)
		_, err := w.telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "block")})
		refused(t, err, errStore)
		same(t, "the database", w.dump(), before)
	})
}

// seen is what the gateway observes of a session.
func (w *world) saw(id, host string, evidence health.Type) {
	w.observer.Observe(traffic.Observation{SessionID: id, At: w.clock.Now(), Type: "tunnel", Evidence: evidence, Host: host,
		Bytes: 10, ExitIP: "10.0.0.1", Latency: 5 * time.Millisecond})
}

func (w *world) figures(agent, id string) (reported, observed int64, score int) {
	w.t.Helper()
	h, err := w.telemetry.Health(w.t.Context(), agent, id)
	ok(w.t, err)
	s := h.State.Stats().Session
	return s.Reported.TotalEvents, s.Observed.TotalEvents, h.Verdict.HealthScore
}
