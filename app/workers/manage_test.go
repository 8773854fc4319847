package workers_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/telemetry"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/test/apptest"
)

func TestWorkersAreMadeBeforeTheirUse(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true, Exits: 10}) // five of them dynamic
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	in := workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"b", "a", "c"},
		Settings: worker.Settings{Unique: true, TTL: time.Minute}}
	list, made, err := w.Workers.Create(t.Context(), in)
	apptest.OK(t, err)
	distinct := map[netip.Addr]bool{}
	for i, x := range list {
		apptest.Equal(t, "the order", x.Name, in.Names[i])
		distinct[x.Exit.IP] = true
	}
	if !made || len(distinct) != 3 {
		t.Errorf("made %v, on %d exits", made, len(distinct))
	}
	again, made, err := w.Workers.Create(t.Context(), in)
	apptest.OK(t, err)
	if made || again[0].Worker != list[0].Worker {
		t.Errorf("made again: %v, %+v", made, again[0])
	}
	apptest.Equal(t, "its use", mustUse(w, v.ID, "-session-a-ttl-1m").ID, list[1].ID)
	// Five exits: three more unique ones are too many, and none of them is made.
	in.Names = []string{"a", "d", "e", "f"}
	_, _, err = w.Workers.Create(t.Context(), in)
	apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
	if e, _ := errors.AsType[*domain.Error](err); e.Details["available"] != 3 {
		t.Errorf("available: %v", e.Details)
	}
	apptest.Equal(t, "workers", len(stored(w, v.ID)), 3)
	in.Names, in.TTL = []string{"a"}, time.Hour
	_, _, err = w.Workers.Create(t.Context(), in)
	apptest.ErrorIs(t, err, worker.ErrDiffers)
	for _, bad := range []workers.Create{{}, {Names: []string{"a-b"}}, {Names: []string{"a", "a"}},
		{Names: []string{"a"}, Settings: worker.Settings{TTL: time.Second}}, {Names: []string{"a"}, City: "berlin"}, {Names: []string{"x"}, Country: "ZZ"}} {
		bad.AgentID, bad.SessionID = agent, v.ID
		_, _, err := w.Workers.Create(t.Context(), bad)
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	in.AgentID = w.Register()
	_, _, err = w.Workers.Create(t.Context(), in)
	apptest.ErrorIs(t, err, session.ErrNotFound)
}

func TestARotatedWorkerMoves(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	a, b := mustUse(w, v.ID, "-session-a"), mustUse(w, v.ID, "-session-b")
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	in := workers.Rotate{AgentID: agent, SessionID: v.ID, Name: "a", Reason: health.RotationBlock,
		Call: idempotency.Call{Key: "k", Path: "/p", Hash: []byte("h")}}
	got, replayed, err := w.Workers.Rotate(t.Context(), in)
	apptest.OK(t, err)
	if replayed || got.Exit == a.Exit || got.Rotations != 1 || got.Verdict.HealthScore == 100 {
		t.Errorf("%+v", got)
	}
	apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
	rotations := func() int64 {
		o, err := w.Stats.Overview(t.Context(), agent)
		apptest.OK(t, err)
		return o.Rotations
	}
	apptest.Equal(t, "rotations of the account", rotations(), 1)
	again, replayed, err := w.Workers.Rotate(t.Context(), in)
	apptest.OK(t, err)
	if !replayed || again.Exit != got.Exit {
		t.Errorf("repeated: %v %+v", replayed, again)
	}
	apptest.Equal(t, "rotations after the repetition", rotations(), 1)
	apptest.Equal(t, "the other worker", mustUse(w, v.ID, "-session-b"), b)
	apptest.Equal(t, "the session", w.Read(agent, v.ID).Exits[0], v.Exits[0])
	list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 1})
	apptest.OK(t, err)
	if e := list.Items[0]; e.Type != "rotated" || e.Worker != "a" || e.Code != "block" || e.ExitIP != got.Exit.IP.String() {
		t.Errorf("the feed has %+v", e)
	}
	// The use after a rotation may change the words, and only that.
	if x := mustUse(w, v.ID, "-country-de-session-a-ttl-1h"); x.Location.Country != "DE" || x.TTL != time.Hour || x.Exit != got.Exit {
		t.Errorf("%+v", x)
	}
	_, err = use(w, v.ID, "-country-fr-session-a")
	apptest.ErrorIs(t, err, worker.ErrDiffers)
	in.Name, in.Call = "none", idempotency.Call{}
	_, _, err = w.Workers.Rotate(t.Context(), in)
	apptest.ErrorIs(t, err, worker.ErrNotFound)
}

func TestARemovedWorkerIsForgotten(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	a := mustUse(w, v.ID, "-session-a")
	apptest.ErrorIs(t, w.Workers.Remove(t.Context(), w.Register(), v.ID, "a"), session.ErrNotFound)
	apptest.OK(t, w.Workers.Remove(t.Context(), agent, v.ID, "a"))
	apptest.ErrorIs(t, w.Workers.Remove(t.Context(), agent, v.ID, "a"), worker.ErrNotFound)
	_, err := w.Workers.Get(t.Context(), agent, v.ID, "a")
	apptest.ErrorIs(t, err, worker.ErrNotFound)
	if again := mustUse(w, v.ID, "-session-a"); again.ID == a.ID {
		t.Error("the name has the worker that was removed")
	}
}

// A blocked worker counts for itself, and the session is the mean of all.
func TestTheHealthOfWorkers(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	for _, words := range []string{"-session-bad", "-session-good"} {
		mustUse(w, v.ID, words)
	}
	report := func(name, kind string) (telemetry.Reported, error) {
		return w.Telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: v.ID, Worker: name, Report: health.Report{Type: kind}})
	}
	for range 10 {
		_, err := report("bad", "block")
		apptest.OK(t, err)
		w.Observer.Observe(traffic.Observation{SessionID: v.ID, Worker: "good", At: w.Clock.Now(), Type: "tunnel", Evidence: health.Success,
			Host: "example.com", Bytes: 10})
	}
	w.Observer.Observe(traffic.Observation{SessionID: v.ID, Worker: "good", At: w.Clock.Now(), Type: "refused", Code: "TARGET_TIMEOUT"})
	apptest.OK(t, w.Observer.FlushAll(t.Context()))
	list, err := w.Workers.List(t.Context(), agent, v.ID, "", domain.Page{Number: 1, Size: 10})
	apptest.OK(t, err)
	bad, good := list.Items[0], list.Items[1]
	if bad.Verdict.RiskLevel != health.Critical || good.Verdict.HealthScore != 100 || good.LastError.Code != "TARGET_TIMEOUT" {
		t.Errorf("%+v and %+v, %+v", bad.Verdict, good.Verdict, good.LastError)
	}
	h, err := w.Telemetry.Health(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	want := (bad.Verdict.HealthScore + 100 + 1) / 2
	if h.Verdict.HealthScore != want || h.Workers != (health.WorkerCount{Total: 2, AtRisk: 1}) {
		t.Errorf("the session has %+v with %+v, want %d", h.Verdict, h.Workers, want)
	}
	apptest.Equal(t, "in the session", w.Read(agent, v.ID).Verdict.HealthScore, want)
	_, err = report("none", "block")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	apptest.Equal(t, "workers after a report of none", len(stored(w, v.ID)), 2)
	events, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 100})
	apptest.OK(t, err)
	of := map[string]int{}
	for _, e := range events.Items {
		of[e.Worker]++
	}
	if of["bad"] != 10 || of["good"] != 11 {
		t.Errorf("events by worker: %v", of)
	}
}
