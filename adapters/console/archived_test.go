package console_test

import (
	"regexp"
	"strings"
	"testing"

	"agentproxy/app/telemetry"
	"agentproxy/app/workers"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// formKeys are the keys of forms, which are new on each page.
var formKeys = regexp.MustCompile(`value="form_[a-z0-9]+"`)

// Nothing that a person sees changes when the workers of a session are archived.
func TestPagesOfAnArchivedSession(t *testing.T) {
	t.Parallel()
	w := open(t, options{})
	r := w.signIn("20")
	agent, ctx := r.Agent.ID, t.Context()
	ended, live := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	for _, v := range []string{ended.ID, live.ID} {
		list, _, err := w.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: v, Names: []string{"w_1", "w_2"}})
		apptest.OK(t, err)
		w.RenewLease(traffic.LeaseRequest{SessionID: v, Lease: "l", Want: 1_000_000})
		w.RenewLease(traffic.LeaseRequest{SessionID: v, Lease: "l", Up: 600, Connections: 2, Close: true,
			Workers: []traffic.WorkerUse{{ID: list[1].ID, Up: 500, Connections: 1}}})
		for range 10 {
			_, err = w.Telemetry.Report(ctx, agent, telemetry.ReportedEvent{SessionID: v, Worker: "w_1", Report: health.Report{Type: "block"}})
			apptest.OK(t, err)
		}
	}
	_, err := w.Sessions.Terminate(ctx, agent, ended.ID)
	apptest.OK(t, err)
	w.Clock.Advance(91 * session.Day)
	apptest.OK(t, w.Tasks.Settle(ctx))
	w.enter(r.APIKey)
	pages := []string{"/console/", "/console/sessions", "/console/sessions/" + ended.ID, "/console/sessions/" + live.ID}
	before := map[string]string{}
	read := func(path string) string { return formKeys.ReplaceAllString(w.get(path), "") }
	for _, path := range pages {
		before[path] = read(path)
	}
	for _, name := range []string{`id="worker-w_1"`, `id="worker-w_2"`} {
		if !strings.Contains(before[pages[2]], name) {
			t.Fatalf("the page has no %s:\n%s", name, before[pages[2]])
		}
	}
	w.LetArchive()
	apptest.OK(t, w.Tasks.Archive(ctx))
	apptest.Equal(t, "archived", len(w.Column("SELECT session FROM session_archive")), 1)
	for _, path := range pages {
		apptest.Equal(t, path, read(path), before[path])
	}
}
