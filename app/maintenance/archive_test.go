package maintenance_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/app/ledger"
	"agentproxy/app/overview"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func archivedSessions(w *apptest.World) []string {
	return w.Column("SELECT s.id FROM session_archive a JOIN sessions s ON s.seq = a.session ORDER BY s.seq")
}

// buyWithWorkers buys a session with three workers, of which one moved bytes and one was blocked.
func buyWithWorkers(w *apptest.World, agent string) string {
	w.T.Helper()
	ctx := w.T.Context()
	v := w.Buy(agent, apptest.Local)
	list, _, err := w.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"a", "b", "c"}})
	apptest.OK(w.T, err)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Want: 1_000_000})
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Up: 600, Down: 900, Connections: 2, Close: true,
		Workers: []traffic.WorkerUse{{ID: list[0].ID, Up: 500, Down: 800, Connections: 1}}})
	for range 10 {
		_, err = w.Telemetry.Report(ctx, agent, telemetry.ReportedEvent{SessionID: v.ID, Worker: "b", Report: health.Report{Type: "block"}})
		apptest.OK(w.T, err)
	}
	_, _, err = w.Workers.Rotate(ctx, workers.Rotate{AgentID: agent, SessionID: v.ID, Name: "b"})
	apptest.OK(w.T, err)
	w.Observer.Observe(traffic.Observation{SessionID: v.ID, At: w.Clock.Now(), Type: "tunnel", Evidence: health.Timeout, Host: "shop.test",
		ExitIP: "10.0.0.1", Client: netip.MustParseAddr("192.0.2.7"), Worker: "c"})
	apptest.OK(w.T, w.Observer.FlushAll(ctx))
	return v.ID
}

func end(w *apptest.World, agent, id string) {
	w.T.Helper()
	_, err := w.Sessions.Terminate(w.T.Context(), agent, id)
	apptest.OK(w.T, err)
}

// answers is what the use cases answer about the sessions of an agent and their workers.
func answers(w *apptest.World, agent string, ids ...string) map[string]any {
	ctx, page := w.T.Context(), domain.Page{Number: 1, Size: 100}
	got := map[string]any{}
	add := func(what string, value any, err error) {
		got[what] = value
		got["refusal of "+what] = err
	}
	list, err := w.Sessions.List(ctx, sessions.List{AgentID: agent, Page: page})
	add("sessions", list, err)
	look := overview.New(w.Store, w.Clock)
	summary, err := look.Summarize(ctx, agent, 20)
	add("summary", summary, err)
	risks, err := look.Live(ctx, overview.Live{AgentID: agent, Risk: health.Low, Filter: ports.SessionFilter{}, Page: page})
	add("at risk", risks, err)
	totals, err := w.Stats.Overview(ctx, agent)
	add("totals", totals, err)
	since, err := ledger.ParseRange("hour", "", "", w.Clock.Now())
	apptest.OK(w.T, err)
	days, err := w.Stats.Series(ctx, agent, since)
	add("report", days, err)
	sent, err := w.Webhooks.Deliveries(ctx, agent, "", page)
	add("deliveries", sent, err)
	for _, id := range ids {
		read, err := w.Sessions.Read(ctx, agent, id)
		add(id, read, err)
		status, err := w.Telemetry.Health(ctx, agent, id)
		add("health of "+id, status, err)
		events, err := w.Sessions.Events(ctx, agent, id, page)
		add("events of "+id, events, err)
		clients, err := w.Sessions.Clients(ctx, agent, id, page)
		add("clients of "+id, clients, err)
		for _, s := range append(worker.Statuses, "") {
			some, err := w.Workers.List(ctx, agent, id, s, page)
			add("workers of "+id+" "+string(s), some, err)
		}
		for _, name := range []string{"a", "b", "c", "missing"} {
			one, err := w.Workers.Get(ctx, agent, id, name)
			add("worker "+name+" of "+id, one, err)
		}
	}
	return got
}

// same fails unless answers are equal in everything, and so in what they do not show.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want, got, all, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// verified audits the accounts and returns how many entries were looked at.
func verified(w *apptest.World) int {
	w.T.Helper()
	faults, entries, err := w.DB.Verify(w.T.Context())
	if err != nil || len(faults) > 0 {
		w.T.Errorf("audit: %v, %v", faults, err)
	}
	return entries
}

// TestAnArchivedSessionAnswersAsBefore compares all answers about sessions before and after they are archived.
func TestAnArchivedSessionAnswersAsBefore(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	w.LetArchive()
	ended, live, plain := buyWithWorkers(w, agent), buyWithWorkers(w, agent), w.Buy(agent, apptest.Local).ID
	end(w, agent, ended)
	end(w, agent, plain)
	w.Clock.Advance(89 * session.Day)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	w.Clock.Advance(session.Day)
	before := answers(w, agent, ended, live, plain)
	entries := verified(w)
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	if got := archivedSessions(w); len(got) != 1 || got[0] != ended {
		t.Fatalf("archived are %v", got)
	}
	apptest.Equal(t, "rows of workers left", len(w.Column("SELECT seq FROM workers")), 3)
	apptest.Equal(t, "rows of health left", len(w.Column("SELECT worker FROM worker_health")), 2)
	same(t, "archived", before, answers(w, agent, ended, live, plain))
	apptest.Equal(t, "audited entries", verified(w), entries)
	w.Wire(apptest.Options{}, w.Clock, w.IDs) // a restart, without what is in memory
	same(t, "after a restart", before, answers(w, agent, ended, live, plain))
	dump := w.Dump()
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "the database after another run", w.Dump(), dump)
}

// TestWhatIsLateForAnArchivedSession covers a gateway that the others did not reach for 90 days.
func TestWhatIsLateForAnArchivedSession(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	w.LetArchive()
	id := buyWithWorkers(w, agent)
	one, err := w.Workers.Get(t.Context(), agent, id, "a")
	apptest.OK(t, err)
	w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "far", Want: 1000})
	w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "far", Up: 1000}) // used up, and more may follow
	end(w, agent, id)
	w.Clock.Advance(91 * session.Day)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived while a lease is out", len(archivedSessions(w)), 0)
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived", len(archivedSessions(w)), 1)
	before := answers(w, agent, id)
	late := traffic.LeaseRequest{SessionID: id, Lease: "far", Up: 1050, Down: 50, Connections: 1, Want: 1000,
		Workers: []traffic.WorkerUse{{ID: one.ID, Up: 50, Down: 50, Connections: 1}}, Report: []int64{one.ID}}
	apptest.Equal(t, "what was not reported in time", w.RenewLease(late).Outcome, traffic.Lost)
	apptest.Equal(t, "a new lease", w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "new", Want: 1000}).Outcome, traffic.Over)
	_, err = w.Workers.Worker(t.Context(), id, worker.Parameters{Name: "new"})
	apptest.ErrorIs(t, err, session.ErrOver)
	_, err = w.Telemetry.Report(t.Context(), agent, telemetry.ReportedEvent{SessionID: id, Worker: "a", Report: health.Report{Type: "block"}})
	apptest.ErrorIs(t, err, session.ErrOver)
	same(t, "after late calls", before, answers(w, agent, id))
	apptest.Equal(t, "archived", len(archivedSessions(w)), 1)

	// An observation is stored whenever it comes, and the session is archived again.
	w.Observer.Observe(traffic.Observation{SessionID: id, At: w.Clock.Now(), Type: "tunnel", Evidence: health.Timeout, Host: "shop.test",
		Worker: "a", Code: "TARGET_TIMEOUT"})
	apptest.OK(t, w.Observer.FlushAll(t.Context()))
	apptest.Equal(t, "archived after an observation", len(archivedSessions(w)), 0)
	seen, err := w.Workers.Get(t.Context(), agent, id, "a")
	apptest.OK(t, err)
	if seen.LastError.At.IsZero() || seen.ID != one.ID || seen.Usage != one.Usage {
		t.Errorf("it is %+v", seen)
	}
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived again", len(archivedSessions(w)), 1)
	again, err := w.Workers.Get(t.Context(), agent, id, "a")
	apptest.OK(t, err)
	same(t, "read from the archive", seen, again)
	apptest.OK(t, w.Workers.Remove(t.Context(), agent, id, "a"))
	left, err := w.Workers.List(t.Context(), agent, id, "", domain.Page{Number: 1, Size: 9})
	if err != nil || left.Total != 2 {
		t.Errorf("after one was removed: %+v, %v", left, err)
	}
}

// A session is due once, on however many replicas, and not by a clock that was ahead for a while.
func TestArchivingAtAnyTime(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	agent := w.RegisterFunded(50)
	first, second := buyWithWorkers(w, agent), buyWithWorkers(w, agent)
	end(w, agent, first)
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	w.Clock.Advance(91*session.Day - time.Hour)
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived before the database lets it", len(archivedSessions(w)), 0)
	w.LetArchive()
	w.Clock.Advance(-91 * session.Day)
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived by a clock that went back", len(archivedSessions(w)), 0)
	w.Clock.Advance(90*session.Day - time.Microsecond)
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived a microsecond too early", len(archivedSessions(w)), 0)
	w.Clock.Advance(time.Microsecond)
	w.Store.Before = func() { w.Clock.Advance(-time.Microsecond) } // before the unit
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived by a clock that went back meanwhile", len(archivedSessions(w)), 0)
	w.Clock.Advance(time.Microsecond)
	end(w, agent, second) // by a clock that is right again, while another is ahead
	w.Store.FailUpdates(1)
	apptest.ErrorIs(t, w.Tasks.Archive(t.Context()), apptest.ErrStore)
	apptest.Equal(t, "archived by a store that fails", len(archivedSessions(w)), 0)
	w.Clock.Advance(time.Minute)
	before := answers(w, agent, first, second)
	others := make([]apptest.UseCases, 4)
	for i := range others {
		others[i] = w.UseCases // of another process
		w.Connect(0, w.Clock, nil, slog.New(slog.DiscardHandler))
	}
	apptest.Concurrently(len(others), func(i int) {
		if err := others[i].Tasks.Archive(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if got := archivedSessions(w); len(got) != 1 || got[0] != first {
		t.Errorf("archived are %v", got)
	}
	same(t, "archived by four", before, answers(w, agent, first, second))
}

// TestArchivingPageByPage has more sessions with workers than one run looks at.
func TestArchivingPageByPage(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	agent := w.RegisterFunded(50)
	w.LetArchive()
	old := buyWithWorkers(w, agent) // lives
	id := buyWithWorkers(w, agent)
	end(w, agent, id)
	more := w.Read(agent, id).Session
	more.Money = session.Money{}
	apptest.OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for n := range 600 {
			more.ID = fmt.Sprint("sess_more_", n)
			if err := tx.Sessions().Insert(ctx, more); err != nil {
				return err
			}
			if _, err := tx.Workers().Insert(ctx, worker.Worker{SessionID: more.ID, Name: "x", CreatedAt: w.Clock.Now()}); err != nil {
				return err
			}
		}
		return nil
	}))
	w.Clock.Advance(91 * session.Day)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	for _, want := range []int{499, 601, 601, 601} { // the first that it looks at lives
		apptest.OK(t, w.Tasks.Archive(t.Context()))
		apptest.Equal(t, "archived after a run", len(archivedSessions(w)), want)
	}
	end(w, agent, old)
	w.Clock.Advance(90 * session.Day)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.OK(t, w.Tasks.Archive(t.Context()))
	apptest.Equal(t, "archived in the end", len(archivedSessions(w)), 602)
	w.Exec("DELETE FROM session_archive")
	w.Exec("DELETE FROM sessions WHERE id LIKE 'sess_more_%'") // they do not add up
}

// With a session end its rules and the workers that were not used; what is known of the others stays.
func TestWhatASessionAloneNeededEndsWithIt(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	var ids []string
	for range 3 {
		id := buyWithWorkers(w, agent)
		ids = append(ids, id)
		names := make([]string, 500)
		for i := range names {
			names[i] = fmt.Sprint("unused", i)
		}
		_, _, err := w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: id, Names: names})
		apptest.OK(t, err)
		_, err = w.Policies.Put(t.Context(), agent, id, policy.Own{Deny: []string{"ads.test"}})
		apptest.OK(t, err)
	}
	kept := func(id string) (names []string, rules int) {
		t.Helper()
		list, err := w.Workers.List(t.Context(), agent, id, "", domain.Page{Number: 1, Size: 1000})
		apptest.OK(t, err)
		for _, v := range list.Items {
			names = append(names, v.Name)
		}
		own, err := w.Policies.Get(t.Context(), agent, id)
		apptest.OK(t, err)
		return names, len(own.Deny)
	}
	w.RenewLease(traffic.LeaseRequest{SessionID: ids[1], Lease: "open", Want: 1_000_000})
	end(w, agent, ids[0])
	end(w, agent, ids[1]) // with a lease out, on which bytes of its workers may come
	apptest.OK(t, w.DB.SumUp(t.Context()))
	names, rules := kept(ids[0])
	apptest.Equal(t, "workers that are kept", fmt.Sprint(names), "[a b c]")
	apptest.Equal(t, "rules of an ended session", rules, 0)
	for _, id := range ids[1:] {
		names, rules = kept(id)
		apptest.Equal(t, "workers of a session that goes on", len(names), 503)
		apptest.Equal(t, "its rules", rules, 1)
	}
	w.RenewLease(traffic.LeaseRequest{SessionID: ids[1], Lease: "open", Close: true})
	apptest.OK(t, w.DB.SumUp(t.Context()))
	names, _ = kept(ids[1])
	apptest.Equal(t, "workers once the lease is back", len(names), 3)
}
