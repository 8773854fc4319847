package console_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// asWorker probes an exit as 192.0.2.1 and that of a worker as 192.0.2.2, of which nothing is known.
type asWorker struct{}

func (asWorker) Probe(_ context.Context, of exit.Ref) (ports.Probe, error) {
	if of.Worker != "" {
		return ports.Probe{ExitIP: "192.0.2.2"}, nil
	}
	return ports.Probe{ExitIP: "192.0.2.1"}, nil
}

func (asWorker) Facts(_ context.Context, a netip.Addr) exit.Known {
	if a.String() == "192.0.2.2" {
		return exit.Known{}
	}
	return exit.Known{Country: "LT", Network: exit.Hosting, Listed: []string{"zen"}}
}
func (asWorker) Any() bool        { return true }
func (asWorker) Can() exit.Fields { return exit.Fields{Country: true} }

// The page of a session shows what was measured of its exits, and nothing that was not: what was sold is no fact.
func TestASessionShowsWhatItsExitsAre(t *testing.T) {
	t.Parallel()
	w := open(t, options{})
	id := w.signIn("60").Agent.ID
	f := apptest.Form(apptest.Static)
	f.Quantity = new(2)
	static, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: id, Form: f})
	apptest.OK(t, err)
	dynamic := w.Buy(id, apptest.Local)
	_, _, err = w.Workers.Create(t.Context(), workers.Create{AgentID: id, SessionID: dynamic.ID, Names: []string{"w1", "w2"}})
	apptest.OK(t, err)
	checks := sessions.NewChecks(w.Sessions, asWorker{}, asWorker{}, w.Clock)
	ips := static.View.Exits
	for _, c := range []sessions.Check{{SessionID: static.View.ID, IP: ips[1].IP.String()}, {SessionID: dynamic.ID, Worker: "w1"}} {
		c.AgentID = id
		_, err := checks.Check(t.Context(), c)
		apptest.OK(t, err)
	}
	exits := strings.Join(strings.Fields(byID(t, w.get("/console/sessions/"+static.View.ID), "exits")), " ")
	if want := text(ips[0]) + " not measured , " + text(ips[1]) + " measured: LT, hosting, on the list zen"; exits != want {
		t.Errorf("the exits are %q, want %q", exits, want)
	}
	page := w.get("/console/sessions/" + dynamic.ID)
	if row := byID(t, page, "worker-w1"); !strings.Contains(row, "measured: place unknown") || strings.Contains(row, "DE") {
		t.Errorf("a worker of which nothing is known: %s", row)
	}
	if row := byID(t, page, "worker-w2"); strings.Contains(row, "measured") {
		t.Errorf("a worker that was not checked: %s", row)
	}
}

func text(e session.Exit) string { return e.IP.String() }
