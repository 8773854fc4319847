package sessions_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// countedProber sees each exit as one address, and records what it was asked for.
type countedProber struct {
	mu    sync.Mutex
	asked []exit.Ref
	err   error
	meet  func() // during a probe
}

func (p *countedProber) Probe(_ context.Context, of exit.Ref) (ports.Probe, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, of)
	if p.meet != nil {
		p.meet()
	}
	return ports.Probe{ExitIP: "192.0.2.1"}, p.err
}

// take returns how many probes there were since the last call, of the exits of some workers if any is named.
func (p *countedProber) take(of ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asked {
		if len(of) == 0 || slices.Contains(of, a.Worker) {
			n++
		}
	}
	p.asked = nil
	return n
}

// lithuania has one place for all addresses, unless it is empty.
type lithuania struct{ none bool }

func (l lithuania) Facts(context.Context, netip.Addr) exit.Known {
	return exit.Known{Country: "LT", Listed: []string{}}
}
func (l lithuania) Any() bool { return !l.none }

func (lithuania) Can() exit.Fields { return exit.Fields{Country: true, Listed: true} }

// refuseMeasuring is for exits of which something is known.
func refuseMeasuring() error { return session.ErrNotReady }

// differs counts the events of places that differ: in the feeds, and in the log of a session.
func differs(w *apptest.World, agent, id string) (sent, listed int) {
	w.T.Helper()
	log, err := w.Sessions.Events(context.Background(), agent, id, domain.Page{Number: 1, Size: 100})
	apptest.OK(w.T, err)
	for _, e := range log.Items {
		if e.Type == eventlog.ExitDiffers && e.ExitIP == "192.0.2.1" && !e.IsFailure() && strings.Contains(e.Message, "LT, sold as DE") {
			listed++
		}
	}
	return len(w.Column(`SELECT id FROM outbox WHERE type = 'session.exit_place_differs' AND agent_id = ?`, agent)), listed
}

// Every address of a static session is measured when it is active and each day from then on; that its place is not
// the one sold is listed and sent once.
func TestStaticAddressesAreMeasured(t *testing.T) {
	t.Parallel()
	for _, open := range []func(testing.TB) *apptest.World{apptest.New, apptest.OpenPostgres} {
		w := open(t)
		agent := w.Register()
		f := apptest.Form(apptest.Static)
		f.Quantity = new(2)
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		p := new(countedProber)
		checks := sessions.NewChecks(w.Sessions, p, lithuania{}, w.Clock)
		if v := w.Read(agent, d.View.ID); len(v.Measured) != 2 || v.Measured[0] != nil {
			t.Errorf("before: %v", v.Measured)
		}
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes", p.take(), 2)
		v := w.Read(agent, d.View.ID)
		for i, m := range v.Measured {
			if m == nil || m.Country != "LT" || m.Declared != "DE" || m.At != w.Clock.Now() {
				t.Errorf("address %d: %+v", i, m)
			}
		}
		list, err := w.Sessions.List(t.Context(), sessions.List{AgentID: agent, Page: domain.Page{Number: 1, Size: 10}})
		apptest.OK(t, err)
		if len(list.Items[0].Measured) != 2 || list.Items[0].Measured[1] == nil {
			t.Errorf("in the list: %v", list.Items[0].Measured)
		}
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes at once again", p.take(), 0)
		for i, e := range d.View.Exits { // any of them by its address, at once
			_, err := checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: d.View.ID, IP: e.IP.String()})
			apptest.OK(t, err)
			if n := len(p.asked); n != 1 || p.asked[0].Index != i {
				t.Errorf("the check of %v asked %v", e.IP, p.asked)
			}
			p.take()
		}
		for id, ip := range map[string]string{d.View.ID: "192.0.2.77", w.Buy(agent, apptest.Local).ID: "10.0.0.1"} {
			_, err := checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: id, IP: ip})
			apptest.Equal(t, "field of "+ip, apptest.InvalidFields(err), "ip")
		}
		apptest.Equal(t, "probes of what is no address", p.take(), 0)
		w.Clock.Advance(exit.Every)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes a day later", p.take(), 2)
		sent, listed := differs(w, agent, d.View.ID)
		apptest.Equal(t, "events sent", sent, 2)
		apptest.Equal(t, "events listed", listed, 2)

		// An attempt that fails leaves what was measured, and is made again an hour later.
		p.err = ports.ErrProvider
		w.Clock.Advance(exit.Every)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes that fail", p.take(), 2)
		if v := w.Read(agent, d.View.ID); v.Measured[0] == nil {
			t.Error("what was measured is gone")
		}
		w.Clock.Advance(exit.RetryAfter)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes an hour later", p.take(), 2)

		_, err = w.Sessions.Terminate(t.Context(), agent, d.View.ID)
		apptest.OK(t, err)
		w.Clock.Advance(exit.Every)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes after the end", p.take(), 0)
		apptest.Equal(t, "records after the end", len(w.Column(`SELECT session_id FROM exit_measures`)), 0)
	}
}

// A measurement is of the exit that it was made of: after a rotation nothing is known until the next one, which follows
// by itself, at most once in exit.Apart.
func TestAnotherExitIsMeasured(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	p := new(countedProber)
	checks := sessions.NewChecks(w.Sessions, p, lithuania{}, w.Clock)
	w.Watch(checks)
	apptest.OK(t, checks.Measure(t.Context()))
	apptest.Equal(t, "probes of a dynamic session that was not checked", p.take(), 0)

	_, err := checks.Exit(t.Context(), agent, v.ID, "w1", refuseMeasuring)
	apptest.ErrorIs(t, err, worker.ErrNotFound)
	_, _, err = w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"w1", "w2"}})
	apptest.OK(t, err)
	rotate := map[string]func() error{
		"": func() error {
			_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			return err
		},
		"w1": func() error {
			_, _, err := w.Workers.Rotate(t.Context(), workers.Rotate{AgentID: agent, SessionID: v.ID, Name: "w1"})
			return err
		},
	}
	for _, name := range []string{"", "w1"} {
		_, err := checks.Exit(t.Context(), agent, v.ID, name, refuseMeasuring)
		apptest.ErrorIs(t, err, session.ErrNotReady)
		m, err := checks.Exit(t.Context(), agent, v.ID, name, func() error { return nil })
		apptest.OK(t, err)
		apptest.Equal(t, "country", m.Country, "LT")
		_, err = checks.Exit(t.Context(), agent, v.ID, name, refuseMeasuring)
		apptest.OK(t, err)
		apptest.Equal(t, "probes", p.take(), 1)

		apptest.OK(t, rotate[name]())
		_, err = checks.Exit(t.Context(), agent, v.ID, name, refuseMeasuring)
		apptest.ErrorIs(t, err, session.ErrNotReady)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes at once", p.take(), 0)
		w.Clock.Advance(exit.Apart)
		apptest.OK(t, checks.Measure(t.Context()))
		apptest.Equal(t, "probes later", p.take(name), 1)
		_, err = checks.Exit(t.Context(), agent, v.ID, name, refuseMeasuring)
		apptest.OK(t, err)

		// An exit that changes while it is measured is not known.
		apptest.OK(t, rotate[name]())
		p.meet = func() { apptest.OK(t, rotate[name]()) }
		_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID, Worker: name})
		apptest.OK(t, err)
		p.meet = nil
		_, err = checks.Exit(t.Context(), agent, v.ID, name, refuseMeasuring)
		apptest.ErrorIs(t, err, session.ErrNotReady)
		p.take()
	}
	list, err := w.Workers.List(t.Context(), agent, v.ID, "", domain.Page{Number: 1, Size: 10})
	apptest.OK(t, err)
	if list.Items[0].Measured != nil || list.Items[1].Measured != nil {
		t.Error("a worker has the facts of another exit")
	}
	_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID, Worker: "w2"})
	apptest.OK(t, err)
	one, err := w.Workers.Get(t.Context(), agent, v.ID, "w2")
	apptest.OK(t, err)
	if one.Measured == nil || one.Measured.Country != "LT" {
		t.Errorf("a worker that was checked: %+v", one.Measured)
	}
	apptest.OK(t, w.Workers.Remove(t.Context(), agent, v.ID, "w2"))
	apptest.OK(t, checks.Measure(t.Context()))
	apptest.Equal(t, "records", strings.Join(w.Column(`SELECT worker FROM exit_measures ORDER BY worker`), ","), ",w1")
}

// One agent has a few of the measurements of a run, however many exits it has, and none is left out for good.
func TestMeasurementsAreShared(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	many, one := w.RegisterFunded(1000), w.Register()
	for range 12 {
		w.Buy(many, apptest.Static)
	}
	w.Buy(one, apptest.Static)
	p := new(countedProber)
	checks := sessions.NewChecks(w.Sessions, p, lithuania{}, w.Clock)
	apptest.OK(t, checks.Measure(t.Context()))
	of := map[string]int{}
	for _, a := range p.asked {
		of[a.AgentID]++
	}
	if of[many] != 5 || of[one] != 1 {
		t.Errorf("measured %v", of)
	}
	for range 2 {
		w.Clock.Advance(5 * time.Minute)
		apptest.OK(t, checks.Measure(t.Context()))
	}
	apptest.Equal(t, "probes", p.take(), 13)
}

// An idle worker whose time is over gets another exit by its next use, which no measurement is.
func TestNoWorkerIsUsedByAMeasurement(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	_, _, err := w.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"w1"},
		Settings: worker.Settings{TTL: time.Minute}})
	apptest.OK(t, err)
	p := new(countedProber)
	checks := sessions.NewChecks(w.Sessions, p, lithuania{}, w.Clock)
	_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID, Worker: "w1"})
	apptest.OK(t, err)
	p.take()
	w.Clock.Advance(exit.Every)
	apptest.OK(t, checks.Measure(t.Context()))
	apptest.Equal(t, "probes", p.take(), 0)
}

// Without sources of facts nothing is kept, and what was kept goes.
func TestNothingIsKeptWithoutSources(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Static)
	p := new(countedProber)
	without := sessions.NewChecks(w.Sessions, p, lithuania{none: true}, w.Clock)
	_, err := without.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.OK(t, without.Measure(t.Context()))
	apptest.Equal(t, "probes", p.take(), 1)
	apptest.Equal(t, "records", len(w.Column(`SELECT worker FROM exit_measures`)), 0)
	apptest.OK(t, sessions.NewChecks(w.Sessions, p, lithuania{}, w.Clock).Measure(t.Context()))
	apptest.Equal(t, "records", len(w.Column(`SELECT worker FROM exit_measures`)), 1)
	w.Clock.Advance(exit.Every)
	apptest.OK(t, without.Measure(t.Context()))
	apptest.Equal(t, "records a day after", len(w.Column(`SELECT worker FROM exit_measures`)), 0)
}
