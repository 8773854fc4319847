package telemetry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

func event(id, kind string) telemetry.ReportedEvent {
	return telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind}}
}

func TestReport(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	t.Run("the answer is the health after it", func(t *testing.T) {
		latency, status, before := 120, 403, w.Clock.Now().Add(-time.Hour)
		r, err := w.Telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: v.ID, Report: health.Report{Type: "http_error",
			StatusCode: &status, LatencyMS: &latency, TargetHost: "Example.com:443", ErrorMessage: "<b>no</b>", OccurredAt: &before}})
		apptest.OK(t, err)
		if !strings.HasPrefix(r.EventID, "evt_") || r.Verdict.HealthScore != 78 || r.Verdict.SuccessRate != 0 {
			t.Errorf("answered %+v", r)
		}
		h, err := w.Telemetry.Health(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the health", h.Verdict, r.Verdict)
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		e := list.Items[0]
		if list.Total != 1 || e.ID != r.EventID || e.Type != "http_error" || e.StatusCode != 403 || e.LatencyMS != 120 || e.Source.String() != "agent" ||
			e.TargetHost != "Example.com:443" || e.Message != "<b>no</b>" || !e.OccurredAt.Equal(before) || !e.At.Equal(w.Clock.Now()) {
			t.Errorf("the feed has %+v", e)
		}
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		if o.EventsReported != 1 || o.SuccessRate != 0 {
			t.Errorf("the overview is %+v", o)
		}
	})
	t.Run("a session that is creating takes it", func(t *testing.T) {
		later := w.Buy(agent, apptest.LocalAsync)
		apptest.Equal(t, "the score", w.Report(agent, later.ID, "block").Verdict.HealthScore, 75)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the score", w.Read(agent, later.ID).Verdict.HealthScore, 75)
	})
	t.Run("one that ended, one of another and one that is not there refuse it", func(t *testing.T) {
		over := w.Buy(agent, apptest.Local)
		_, err := w.Sessions.Terminate(t.Context(), agent, over.ID)
		apptest.OK(t, err)
		before := w.Dump()
		_, err = w.Telemetry.Report(t.Context(), agent, event(over.ID, "success"))
		apptest.ErrorIs(t, err, session.ErrOver)
		_, err = w.Telemetry.Report(t.Context(), unknownAgent(w), event(v.ID, "success"))
		apptest.ErrorIs(t, err, session.ErrNotFound)
		_, err = w.Telemetry.Report(t.Context(), agent, event("sess_none", "success"))
		apptest.ErrorIs(t, err, session.ErrNotFound)
		apptest.Equal(t, "the database", w.Dump(), before)
		_, err = w.Telemetry.Health(t.Context(), agent, over.ID)
		apptest.OK(t, err)
	})
	t.Run("a malformed one is refused with its fields", func(t *testing.T) {
		bad := -1
		before := w.Dump()
		_, err := w.Telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: v.ID, Report: health.Report{Type: "fine", LatencyMS: &bad}})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "fields", apptest.InvalidFields(err), "event_type, latency_ms")
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("of 200 reports in a minute 120 are scored", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		before, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		for range 200 {
			w.Report(agent, v.ID, "success")
		}
		w.Report(agent, v.ID, "block")
		apptest.Equal(t, "the score", w.Read(agent, v.ID).Verdict.HealthScore, 100)
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		apptest.Equal(t, "reported", o.EventsReported-before.EventsReported, 201)
		apptest.Equal(t, "scored", w.Column(`SELECT scored FROM counters WHERE agent_id = ?`, agent)[0], fmt.Sprint(120+2))
	})
}

// unknownAgent is an agent who was there before.
func unknownAgent(w *apptest.World) string {
	return w.Column(`SELECT id FROM agents ORDER BY seq DESC LIMIT 1`)[0] + "x"
}

func TestBatch(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, foreign := w.Register(), w.Register()
	a, b, over := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	alien := w.Buy(foreign, apptest.Local)
	_, err := w.Sessions.Terminate(t.Context(), agent, over.ID)
	apptest.OK(t, err)
	t.Run("what is well-formed is checked alone", func(t *testing.T) {
		results, err := w.Telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "success"), event(alien.ID, "success"),
			event("sess_none", "success"), event(over.ID, "success"), event(b.ID, "block"), event(a.ID, "success")})
		apptest.OK(t, err)
		want := []error{nil, session.ErrNotFound, session.ErrNotFound, session.ErrOver, nil, nil}
		for i, r := range results {
			if r.Err == nil != (want[i] == nil) || r.Err != nil && !r.Err.Is(want[i]) {
				t.Errorf("event %d of %s: %v, want %v", i, r.SessionID, r.Err, want[i])
			}
		}
		for id, n := range map[string]int64{a.ID: 2, b.ID: 1, over.ID: 0, alien.ID: 0} {
			s := w.Read(map[bool]string{true: foreign, false: agent}[id == alien.ID], id).Health
			apptest.Equal(t, "counted for "+id, s.Stats().Session.Reported.TotalEvents, n)
		}
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		if o.EventsReported != 3 || o.SuccessRate != 2.0/3 {
			t.Errorf("the overview is %+v", o)
		}
		list, err := w.Sessions.Events(t.Context(), agent, a.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		apptest.Equal(t, "in the feed", list.Total, 2)
	})
	t.Run("one that is malformed refuses all, and names itself", func(t *testing.T) {
		status := 600
		before := w.Dump()
		_, err := w.Telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "success"), event("", "success"), event(a.ID, ""),
			{SessionID: a.ID, Report: health.Report{Type: "success", StatusCode: &status}}})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "fields", apptest.InvalidFields(err), "events[1].session_id, events[2].event_type, events[3].status_code")
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("it has 1 to 1000 events", func(t *testing.T) {
		for _, n := range []int{0, 1001} {
			_, err := w.Telemetry.Batch(t.Context(), agent, make([]telemetry.ReportedEvent, n))
			apptest.ErrorIs(t, err, domain.ErrInvalid)
			apptest.Equal(t, "fields", apptest.InvalidFields(err), "events")
		}
		many := make([]telemetry.ReportedEvent, telemetry.MaxBatch)
		for i := range many {
			many[i] = event(b.ID, "custom")
		}
		results, err := w.Telemetry.Batch(t.Context(), agent, many)
		apptest.OK(t, err)
		apptest.Equal(t, "answered", len(results), 1000)
		list, err := w.Sessions.Events(t.Context(), agent, b.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		apptest.Equal(t, "in the feed", list.Total, 1001)
	})
	t.Run("the list of faults is bounded", func(t *testing.T) {
		_, err := w.Telemetry.Batch(t.Context(), agent, make([]telemetry.ReportedEvent, 1000))
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		if n := len(strings.Split(apptest.InvalidFields(err), ", ")); n < 50 || n > 60 {
			t.Errorf("%d faults are listed", n)
		}
	})
	t.Run("a store that fails records nothing", func(t *testing.T) {
		before := w.Dump()
		w.Store.FailUpdates(1)
		_, err := w.Telemetry.Batch(t.Context(), agent, []telemetry.ReportedEvent{event(a.ID, "block")})
		apptest.ErrorIs(t, err, apptest.ErrStore)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
}

func eventTotals(w *apptest.World, agent, id string) (reported, observed int64, score int) {
	w.T.Helper()
	h, err := w.Telemetry.Health(w.T.Context(), agent, id)
	apptest.OK(w.T, err)
	s := h.State.Stats().Session
	return s.Reported.TotalEvents, s.Observed.TotalEvents, h.Verdict.HealthScore
}
