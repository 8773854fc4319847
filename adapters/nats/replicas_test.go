package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/nats"
	"agentproxy/adapters/storage"
	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
	"agentproxy/test/natstest"
	"agentproxy/test/pg"
)

// fold has a replica fold until the returned function is called, which also waits for its end.
func fold(q *nats.Queue, s *telemetry.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { q.Consume(ctx, s.Fold) })
	return func() { cancel(); wg.Wait() }
}

func reported(id, kind, host string) telemetry.ReportedEvent {
	latency := 40
	return telemetry.ReportedEvent{SessionID: id, Report: health.Report{Type: kind, TargetHost: host, LatencyMS: &latency,
		ErrorMessage: "why"}}
}

// outcome is what can be seen of reports.
type outcome struct {
	Verdicts []health.Verdict
	Results  []string
	State    string
	Feed     []eventlog.Event
	Overview string
	Webhooks string
}

// play reports to a world and returns what can be seen of it.
func play(t *testing.T, w *apptest.World) (o outcome) {
	agent := w.RegisterWithWebhook()
	v, over := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	_, err := w.Sessions.Terminate(t.Context(), agent, over.ID)
	apptest.OK(t, err)
	w.Observe(v.ID, "example.com", health.Timeout)
	for i, kind := range []string{"block", "captcha", "success", "custom", "http_error", "block", "block"} {
		w.Clock.Advance(time.Second / 2)
		r, err := w.Telemetry.Report(t.Context(), agent, reported(v.ID, kind, []string{"example.com", "example.org"}[i%2]))
		apptest.OK(t, err)
		o.Verdicts = append(o.Verdicts, r.Verdict)
	}
	_, err = w.Telemetry.Report(t.Context(), agent, reported(over.ID, "block", ""))
	apptest.ErrorIs(t, err, session.ErrOver)
	_, err = w.Telemetry.Report(t.Context(), w.Register(), reported(v.ID, "block", ""))
	apptest.ErrorIs(t, err, session.ErrNotFound)
	var batch []telemetry.ReportedEvent
	for i := range 300 {
		batch = append(batch, reported([]string{v.ID, over.ID, "sess_none"}[i%3], "success", fmt.Sprintf("h%d.test", i)))
	}
	results, err := w.Telemetry.Batch(t.Context(), agent, batch)
	apptest.OK(t, err)
	for _, r := range results {
		o.Results = append(o.Results, fmt.Sprint(r.Err))
	}
	for page := 1; page <= 2; page++ {
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: page, Size: 100})
		apptest.OK(t, err)
		for _, e := range list.Items {
			e.ID = ""
			o.Feed = append(o.Feed, e)
		}
	}
	h, err := w.Telemetry.Health(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	state, err := h.State.MarshalBinary()
	apptest.OK(t, err)
	o.State = fmt.Sprintf("%x", state)
	o.Webhooks = strings.Join(w.Column(`SELECT type || data FROM outbox WHERE agent_id = ? ORDER BY seq`, agent), "; ")
	overview, err := w.Stats.Overview(t.Context(), agent)
	apptest.OK(t, err)
	o.Overview = fmt.Sprintf("%d reported, %.6f", overview.EventsReported, overview.SuccessRate)
	return o
}

func TestReportsThroughTheQueueAreAsWithoutIt(t *testing.T) {
	t.Parallel()
	direct, queued := apptest.New(t), apptest.Open(t, apptest.Options{RepeatUpdates: true})
	q := open(t, natstest.Start(t), 0, long)
	queued.Telemetry.WithQueue(q).FoldWait = long
	defer fold(q, queued.Telemetry)()
	want, got := play(t, direct), play(t, queued)
	if len(want.Feed) < 100 || want.Verdicts[6].HealthScore > 60 || want.Webhooks == "" {
		t.Fatalf("the feed has %d events, the last verdict is %+v", len(want.Feed), want.Verdicts[6])
	}
	apptest.Equal(t, "the outcome", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	t.Run("a call that the server does not take is stored at once", func(t *testing.T) {
		agent := queued.Register()
		v := queued.Buy(agent, apptest.Local)
		events := make([]telemetry.ReportedEvent, telemetry.MaxBatch)
		for i := range events {
			events[i] = reported(v.ID, "custom", "")
			events[i].ErrorMessage = fmt.Sprintf("%01000d", i)
		}
		_, err := queued.Telemetry.Batch(t.Context(), agent, events)
		apptest.OK(t, err)
		h, err := queued.Telemetry.Health(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "reported", h.State.Stats().Session.Reported.TotalEvents, 1000)
	})
	t.Run("a malformed one publishes nothing", func(t *testing.T) {
		before := queued.Dump()
		_, err := queued.Telemetry.Report(t.Context(), "agt_1", reported("sess_1", "fine", ""))
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "the database", queued.Dump(), before)
	})
}

// Without anybody who folds, the answer comes after a while, with the event in its health.
func TestALateFoldDelaysTheAnswerBySoMuch(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	q := open(t, natstest.Start(t), 0, long)
	w.Telemetry.WithQueue(q).FoldWait = time.Millisecond
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	apptest.Equal(t, "the score", w.Report(agent, v.ID, "block").Verdict.HealthScore, 75)
	apptest.Equal(t, "the stored score", w.Read(agent, v.ID).Verdict.HealthScore, 100)
	defer fold(q, w.Telemetry)()
	w.Telemetry.FoldWait = long
	r := w.Report(agent, v.ID, "block")
	apptest.Equal(t, "the score", r.Verdict.HealthScore, w.Read(agent, v.ID).Verdict.HealthScore)
	apptest.Equal(t, "the score of both", r.Verdict.HealthScore, 55)
}

// replica is a process: a service with a database and a queue of its own.
type replica struct {
	queue   *nats.Queue
	service *telemetry.Service
	stop    func()
}

func startReplica(t *testing.T, w *apptest.World, server *natstest.Server, lose func() bool) *replica {
	var store ports.Store = w.Store
	if w.Postgres() {
		db, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(w.Database), MaxConns: 6, Now: w.Clock.Now})
		apptest.OK(t, err)
		t.Cleanup(func() { _ = db.Close() })
		store = db
	}
	r := &replica{queue: open(t, server, 0, 2*time.Second)}
	r.service = telemetry.New(store, w.Clock, w.IDs, telemetry.NewObserver(store, w.Clock, w.IDs)).WithQueue(r.queue)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		r.queue.Consume(ctx, func(ctx context.Context, in ports.QueuedCalls) (ports.FoldCursor, error) {
			at, err := r.service.Fold(ctx, in)
			if err == nil && len(in.Calls) > 0 && lose() { // killed after the commit
				r.queue.Close()
				return at, domain.ErrUnavailable
			}
			return at, err
		})
	})
	r.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(r.stop)
	return r
}

// Replicas on one PostgreSQL die between a fold and whatever comes after it, and the server is
// restarted. Every accepted event is stored once.
func TestKilledReplicasAndServersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Database: pg.Database(t)})
	server := natstest.Start(t)
	random := campaign.Rand(t, 31)
	var mu sync.Mutex
	kill := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(20) == 0
	}
	agents, sessions := make([]string, 4), make([]string, 4)
	for i := range agents {
		agents[i] = w.Register()
		sessions[i] = w.Buy(agents[i], apptest.Local).ID
	}
	accepted := map[string]bool{}
	for round := range campaign.Rounds(1, 40) {
		a, b := startReplica(t, w, server, kill), startReplica(t, w, server, func() bool { return false })
		var wg sync.WaitGroup
		for i, agent := range agents {
			wg.Go(func() {
				for n := range 12 {
					r, err := []*replica{a, b}[n%2].service.Report(t.Context(), agent, reported(sessions[i], "custom", ""))
					if err != nil && !errors.Is(err, domain.ErrUnavailable) {
						t.Error(err)
					}
					if err == nil {
						mu.Lock()
						accepted[r.EventID] = true
						mu.Unlock()
					}
				}
			})
		}
		if round%2 == 0 {
			server.Stop()
			server.Run()
		}
		wg.Wait()
		a.queue.Close()
		a.stop()
		b.stop()
	}
	last := startReplica(t, w, server, func() bool { return false })
	for i, agent := range agents { // everything before it is folded when it is
		r, err := last.service.Report(t.Context(), agent, reported(sessions[i], "custom", ""))
		for errors.Is(err, domain.ErrUnavailable) {
			r, err = last.service.Report(t.Context(), agent, reported(sessions[i], "custom", ""))
		}
		apptest.OK(t, err)
		accepted[r.EventID] = true
		stored := map[string]bool{}
		list, err := waitFor(t, w, agent, sessions[i], r.EventID)
		apptest.OK(t, err)
		for _, e := range list {
			if stored[e.ID] {
				t.Errorf("event %s is stored twice", e.ID)
			}
			stored[e.ID] = true
			delete(accepted, e.ID)
		}
		h, err := w.Telemetry.Health(t.Context(), agent, sessions[i])
		apptest.OK(t, err)
		apptest.Equal(t, "counted", h.State.Stats().Session.Reported.TotalEvents, int64(len(stored)))
	}
	if len(accepted) > 0 {
		t.Errorf("%d accepted events are lost", len(accepted))
	}
}

// waitFor returns the feed of a session once it has an event.
func waitFor(t *testing.T, w *apptest.World, agent, id, event string) (all []eventlog.Event, err error) {
	for {
		all = nil
		for page := 1; ; page++ {
			list, err := w.Sessions.Events(t.Context(), agent, id, domain.Page{Number: page, Size: 100})
			if err != nil {
				return nil, err
			}
			all = append(all, list.Items...)
			if len(all) >= list.Total || len(list.Items) == 0 {
				break
			}
		}
		for _, e := range all {
			if e.ID == event {
				return all, nil
			}
		}
	}
}
