package httpapi_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// requestIDs are new in each answer.
var requestIDs = regexp.MustCompile(`req_[A-Za-z0-9]+`)

// Every operation of the document that reads answers the same when the workers of a session are archived.
func TestAnswersAboutAnArchivedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	a := w.register("Archive")
	at := w.local(a)
	id := strings.TrimPrefix(at, "/v1/sessions/")
	w.do("POST", at+"/workers", `{"count":3}`, a.as).want(201)
	var used worker.Worker
	w.must(w.store.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		used, err = tx.Workers().Get(ctx, id, "w1")
		return err
	}))
	for _, r := range []traffic.LeaseRequest{
		{SessionID: id, Lease: "l", Want: 1_000_000},
		{SessionID: id, Lease: "l", Up: 600, Down: 900, Connections: 2, Close: true,
			Workers: []traffic.WorkerUse{{ID: used.ID, Up: 500, Down: 800, Connections: 1}}},
	} {
		_, err := w.traffic.Renew(t.Context(), "gateway", []traffic.LeaseRequest{r})
		w.must(err)
	}
	for range 10 {
		w.do("POST", at+"/report-event", `{"event_type":"block","worker":"w2"}`, a.as).want(200)
	}
	w.do("POST", at+"/workers/w2/rotate", `{"reason":"block"}`, a.as).want(200)
	w.do("POST", at+"/terminate", "", a.as).want(200)
	w.clock.Advance(100 * session.Day)

	fill := strings.NewReplacer("{session_id}", id, "{name}", "w2", "{month}", w.clock.Now().Format("2006-01"))
	answers := func() map[string]string {
		found := map[string]string{}
		for template, item := range w.doc.doc.Paths.Map() {
			path := "/v1" + fill.Replace(template)
			if item.Get == nil || strings.Contains(path, "{") {
				continue
			}
			for _, query := range []string{"", "?page_size=1"} {
				r := w.do("GET", path+query, "", a.as)
				found[path+query] = requestIDs.ReplaceAllString(string(r.body), "")
			}
		}
		return found
	}
	before := answers()
	for path, field := range map[string]string{
		at: `"workers":`, at + "/workers": `"name":"w1"`, at + "/workers/w2": `"rotations":1`, at + "/health": `"workers":`,
	} {
		if !strings.Contains(before[path], field) {
			t.Errorf("%s has no %s: %s", path, field, before[path])
		}
	}
	w.must(w.store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Workers().Archive(ctx, id, w.clock.Now())
	}))
	after := answers()
	if len(before) != len(after) || len(before) < 30 {
		t.Errorf("%d answers before, %d after", len(before), len(after))
	}
	for path, body := range before {
		if after[path] != body {
			t.Errorf("%s\nbefore: %s\nafter:  %s", path, body, after[path])
		}
	}
}
