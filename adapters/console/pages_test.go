package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"agentproxy/test/apptest"
)

func TestOverviewAndSessions(t *testing.T) {
	w := open(t, options{})
	r := w.signIn("50")
	s := w.Buy(r.Agent.ID, apptest.Local)
	other := w.Buy(w.RegisterFunded(5), apptest.Local)
	w.Report(r.Agent.ID, s.ID, "block")
	body := w.get("/console/")
	b, err := w.Wallet.Balance(context.Background(), r.Agent.ID)
	apptest.OK(t, err)
	for id, want := range map[string]string{"balance": "$" + b.Wallet.Balance().String(), "active-sessions": "1"} {
		if got := byID(t, body, id); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if got := byID(t, body, "failure-list"); !strings.Contains(got, "block") || !strings.Contains(got, "Rotate the session") {
		t.Errorf("the failures are %q", got)
	}
	list := w.get("/console/sessions")
	if !strings.Contains(list, `id="session-`+s.ID+`"`) || strings.Contains(list, other.ID) {
		t.Errorf("the sessions are\n%s", list)
	}
	one := w.get("/console/sessions/" + s.ID)
	if !strings.Contains(one, "proxy.test:8081") || strings.Contains(one, s.Password) {
		t.Errorf("the session is\n%s", one)
	}
	if code, _ := w.send("GET", "/console/sessions/"+other.ID, nil); code != http.StatusNotFound {
		t.Errorf("another agent's session answers %d", code)
	}
	for _, path := range []string{"/console/money", "/console/access", "/console/sessions/new", "/console/sessions/new?product_no=" + apptest.Local,
		"/console/sessions/new?product_no=" + apptest.Static, "/console/sessions/quote?product_no=" + apptest.Local + "&traffic_gb=1",
		"/console/sessions/" + s.ID + "/end", "/console/access/rotate-secret"} {
		if got := w.get(path); strings.Count(got, "<h1>") != 1 {
			t.Errorf("%s has not one h1", path)
		}
	}
}
