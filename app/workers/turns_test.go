package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// tokens is a seller whose exits are named by tokens: nothing is ordered there.
func tokens(t testing.TB) *apptest.World {
	seller := fake.NewProvider("tokens")
	seller.Can(func(c *procurement.Capabilities) { c.InProcess, c.Workers, c.ViaUpstream = true, true, true })
	static := apptest.SharedProduct("sta_remote", session.Static, procurement.Source{Provider: "remote"})
	return apptest.Open(t, apptest.Options{Providers: []ports.Provider{seller}, Products: []catalog.Product{
		apptest.SharedProduct("dyn_tokens", session.Dynamic, procurement.Source{Provider: "tokens"}), static}})
}

// exitOf returns the address that a session at a seller has.
func exitOf(t *testing.T, u apptest.UseCases, id string) netip.Addr {
	t.Helper()
	r, err := u.Traffic.Route(t.Context(), id)
	apptest.OK(t, err)
	return addressOf(r.Upstreams[0])
}

func tries(n int) exit.Rule {
	r := clean
	r.Attempts = n
	return r
}

// 64 purchases at once by two replicas have the exits that were measured, and their rotations too.
func TestSessionsAtASellerHaveTheExitThatPassed(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(40)
	one := g.gate(w, w.UseCases)
	w.Reconnect(w.Catalog)
	two := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(1000)
	ids := make([]string, 64)
	rule := tries(10) // 0.6^10: 1 in 165 is refused
	var refused int
	var mu sync.Mutex
	apptest.Concurrently(64, func(i int) {
		s, err := buyWith(t, []apptest.UseCases{one, two}[i%2], agent, "dyn_tokens", rule)
		switch {
		case errors.Is(err, exit.ErrNotMet):
			mu.Lock()
			refused++
			mu.Unlock()
		case err != nil:
			t.Error(err)
		default:
			ids[i] = s.ID
			if s.Rotation.Count != 0 {
				t.Errorf("a new session has rotated %d times", s.Rotation.Count)
			}
		}
	})
	if n := len(w.Column(`SELECT id FROM sessions`)); n != 64-refused || refused > 8 {
		t.Errorf("%d sessions, %d refused", n, refused)
	}
	apptest.Equal(t, "probes that were beyond the first", g.through.Load() > 64, true)
	for i, id := range ids {
		if id == "" {
			continue
		}
		u := []apptest.UseCases{two, one}[i%2] // the other replica has the same exit
		if a := exitOf(t, u, id); !g.passes(a) {
			t.Fatalf("%s has the exit %v", id, a)
		}
		if i%8 != 0 {
			continue
		}
		for range 3 {
			d, err := u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: id})
			if errors.Is(err, exit.ErrNotMet) {
				continue
			}
			apptest.OK(t, err)
			if a := exitOf(t, one, id); !g.passes(a) {
				t.Fatalf("rotation %d of %s has the exit %v", d.View.Rotation.Count, id, a)
			}
		}
	}
}

// Rotations of one session at the same time have an exit each that passed.
func TestRotationsAtOnceEachHaveAnExitThatPassed(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(100)
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	s, err := buyWith(t, u, agent, "dyn_tokens", tries(10))
	apptest.OK(t, err)
	var rotated int
	var mu sync.Mutex
	apptest.Concurrently(8, func(int) {
		_, err := u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			rotated++
		} else if !errors.Is(err, ports.ErrTimeout) {
			t.Error(err)
		}
	})
	apptest.Equal(t, "rotations", w.Read(agent, s.ID).Rotation.Count, rotated)
	if rotated == 0 || !g.passes(exitOf(t, u, s.ID)) {
		t.Errorf("rotated %d times", rotated)
	}
}

// When all exits of a seller fail nothing is made, charged or changed, and the refusals have no credential.
func TestASellerWhoseExitsAllFail(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(0)
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	before := w.Balance(agent)
	refusals := make([]error, 64)
	apptest.Concurrently(64, func(i int) { _, refusals[i] = buyWith(t, u, agent, "dyn_tokens", tries(2)) })
	for _, err := range refusals {
		var e *domain.Error
		if !errors.As(err, &e) || !errors.Is(err, exit.ErrNotMet) || e.Details["tried"] != 2 {
			t.Fatalf("refused with %v", err)
		}
		if text, _ := json.Marshal(e); strings.Contains(string(text), "-s") || strings.Contains(string(text), ".test") || strings.Contains(string(text), "10.9.") {
			t.Fatalf("the refusal has where the exit is: %s", text)
		}
	}
	apptest.Equal(t, "probes", g.through.Load(), 128)
	apptest.Equal(t, "balance", w.Balance(agent), before)
	apptest.Equal(t, "sessions", len(w.Column(`SELECT id FROM sessions`)), 0)

	// Before the workers: after the first that is refused, the exits of the others are still probed.
	poor := w.Register()
	probes := g.through.Load()
	dear := apptest.Form("dyn_tokens")
	dear.Bytes = apptest.Gigabytes("100")
	_, err := u.Sessions.Create(t.Context(), sessions.Create{AgentID: poor, Form: dear, Require: clean})
	if err == nil || errors.Is(err, exit.ErrNotMet) || g.through.Load() != probes {
		t.Errorf("%d probes for who cannot pay: %v", g.through.Load()-probes, err)
	}

	s, err := buyWith(t, u, agent, "dyn_tokens", exit.Rule{})
	apptest.OK(t, err)
	was := exitOf(t, u, s.ID)
	_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID, Require: &clean})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	_, _, err = u.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(1, 3), Require: &clean})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	if now := w.Read(agent, s.ID); exitOf(t, u, s.ID) != was || now.Rotation.Count != 0 || !now.Require.Empty() || len(w.Column(`SELECT name FROM workers`)) != 0 {
		t.Errorf("a refused call changed the session: %+v", now.Session)
	}
}

// Workers at a seller have exits that passed: made by a call or by their first use on two replicas, rotated, and when
// their time is over. One keeps its exit while no other passes.
func TestWorkersAtASellerHaveExitsThatPassed(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(100)
	one := g.gate(w, w.UseCases)
	w.Reconnect(w.Catalog)
	two := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	s, err := buyWith(t, one, agent, "dyn_tokens", tries(10))
	apptest.OK(t, err)
	check := func(name string, u apptest.UseCases) worker.Worker {
		t.Helper()
		r, err := u.Workers.Worker(t.Context(), s.ID, worker.Parameters{Name: name})
		apptest.OK(t, err)
		if a := addressOf(*r.Upstream); !g.passes(a) {
			t.Fatalf("%s has the exit %v", name, a)
		}
		return r.Worker
	}
	g.passing.Store(40)
	rule := tries(10)
	for range 5 { // 20 of them pass together in about one of 7 tries
		_, _, err = one.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(1, 10),
			Settings: worker.Settings{TTL: time.Minute}, Require: &rule})
		if err == nil {
			break
		}
		apptest.ErrorIs(t, err, exit.ErrNotMet)
		apptest.Equal(t, "workers", len(w.Column(`SELECT name FROM workers`)), 0)
	}
	apptest.OK(t, err)
	for _, name := range named(1, 10) {
		check(name, two)
	}
	apptest.Concurrently(40, func(i int) { // the first uses of ten names by two replicas
		name := fmt.Sprintf("w%d", 11+i%10)
		r, err := []apptest.UseCases{one, two}[i%2].Workers.Worker(context.Background(), s.ID, worker.Parameters{Name: name})
		if errors.Is(err, exit.ErrNotMet) {
			return
		}
		if err != nil || !g.passes(addressOf(*r.Upstream)) {
			t.Errorf("%s: %v", name, err)
		}
	})
	first := check("w1", one)
	rotated := 0
	for range 5 {
		_, _, err := two.Workers.Rotate(t.Context(), workers.Rotate{AgentID: agent, SessionID: s.ID, Name: "w1"})
		if err == nil {
			rotated++
			if now := check("w1", one); now.Turn <= first.Turn || now.Rotations != rotated {
				t.Errorf("rotated from turn %d to %d", first.Turn, now.Turn)
			}
		}
	}
	apptest.Equal(t, "rotated", rotated > 0, true)

	g.passing.Store(80)
	last := check("w2", one)
	w.Clock.Advance(time.Hour)
	if now := check("w2", two); now.Turn == last.Turn {
		t.Errorf("the time of w2 is over, and its turn is %d", now.Turn)
	}
	kept := check("w3", two)
	g.passing.Store(0)
	w.Clock.Advance(time.Hour)
	r, err := one.Workers.Worker(t.Context(), s.ID, worker.Parameters{Name: "w3"})
	apptest.OK(t, err)
	apptest.Equal(t, "the turn while no other exit passes", r.Worker.Turn, kept.Turn)
	_, err = one.Workers.Worker(t.Context(), s.ID, worker.Parameters{Name: "new"})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	_, err = one.Workers.Worker(t.Context(), s.ID, worker.Parameters{})
	apptest.ErrorIs(t, err, worker.ErrParameter) // -rotate
	probes := g.through.Load()
	_, _, err = one.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(100, 120)})
	apptest.Equal(t, "field", apptest.InvalidFields(err), "names")
	apptest.Equal(t, "probes of a call for too many", g.through.Load(), probes)
}

// A timed rotation at a seller is done when its exit was chosen, and no connection waits for that.
func TestTimedRotationsAtASellerAreDoneLater(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(100)
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	f := apptest.Form("dyn_tokens")
	f.RotationMode, f.RotationInterval = session.Timed, new(time.Minute)
	d, err := u.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, Require: tries(10)})
	apptest.OK(t, err)
	id := d.View.ID
	asked, answer := make(chan bool, 100), make(chan bool)
	g.hook = func(ctx context.Context) error {
		asked <- true
		<-answer
		return nil
	}
	g.passing.Store(50)
	w.Clock.Advance(time.Minute)
	was := exitOf(t, u, id)
	for range 3 {
		r, err := u.Traffic.RotateDue(t.Context(), id)
		apptest.OK(t, err)
		apptest.Equal(t, "the exit while another is chosen", addressOf(r.Upstreams[0]), was)
	}
	<-asked
	changed := make(chan bool, 10)
	w.Watch(watcher(changed))
	close(answer)
	<-changed
	if now := w.Read(agent, id); now.Rotation.Count == 1 && !g.passes(exitOf(t, u, id)) || !now.Rotation.NextAt.After(w.Clock.Now()) {
		t.Errorf("rotated %d times, to %v", now.Rotation.Count, exitOf(t, u, id))
	}
	g.passing.Store(0)
	was = exitOf(t, u, id)
	w.Clock.Advance(time.Minute)
	_, err = u.Traffic.RotateDue(t.Context(), id)
	apptest.OK(t, err)
	<-changed
	apptest.Equal(t, "the exit when none passes", exitOf(t, u, id), was)
}

// watcher is sent to when a session changes.
type watcher chan bool

func (watcher) AgentChanged(string)     {}
func (c watcher) SessionChanged(string) { c <- true }

// A repeated call answers as the first one, whatever the sources have since.
func TestARepeatedCallWithARuleAnswersAsTheFirst(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(100)
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	create := sessions.Create{AgentID: agent, Form: apptest.Form("dyn_tokens"), Require: tries(10), Call: apptest.Call("once")}
	d, err := u.Sessions.Create(t.Context(), create)
	apptest.OK(t, err)
	rotation := sessions.Rotate{AgentID: agent, SessionID: d.View.ID, Require: &create.Require, Call: apptest.Call("turn")}
	_, err = u.Sessions.Rotate(t.Context(), rotation)
	apptest.OK(t, err)
	_, _, err = u.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: d.View.ID, Names: named(1, 1)})
	apptest.OK(t, err)
	ofWorker := workers.Rotate{AgentID: agent, SessionID: d.View.ID, Name: "w1", Require: &create.Require, Call: apptest.Call("worker")}
	_, _, err = u.Workers.Rotate(t.Context(), ofWorker)
	apptest.OK(t, err)
	g.none.Store(true)
	g.passing.Store(0)
	probes := g.through.Load()
	again, err := u.Sessions.Create(t.Context(), create)
	apptest.OK(t, err)
	turned, err := u.Sessions.Rotate(t.Context(), rotation)
	apptest.OK(t, err)
	_, replayed, err := u.Workers.Rotate(t.Context(), ofWorker)
	apptest.OK(t, err)
	if again.View.ID != d.View.ID || !again.Replayed || !turned.Replayed || turned.View.Rotation.Count != 1 || !replayed || g.through.Load() != probes {
		t.Errorf("repeated: %+v, %+v", again, turned)
	}
	create.Call = apptest.Call("other")
	_, err = u.Sessions.Create(t.Context(), create)
	apptest.Equal(t, "field", apptest.InvalidFields(err), "require.max_risk")
}

// What is probed at sellers for one agent is bounded: the calls beyond that are refused, and a worker keeps its exit.
func TestProbesOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	g := passing(0)
	g.limit = w.Limits.TakeExit
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	for range 6 {
		_, err := buyWith(t, u, agent, "dyn_tokens", tries(10))
		apptest.ErrorIs(t, err, exit.ErrNotMet)
	}
	_, err := buyWith(t, u, agent, "dyn_tokens", tries(1))
	apptest.ErrorIs(t, err, account.ErrRateLimited)
	var e *domain.Error
	if !errors.As(err, &e) || e.RetryAfter <= 0 {
		t.Errorf("refused with %v", err)
	}
	apptest.Equal(t, "probes", g.through.Load(), 60)
	_, err = buyWith(t, u, w.RegisterFunded(100), "dyn_tokens", tries(1))
	apptest.ErrorIs(t, err, exit.ErrNotMet) // another agent's
}

// A seller that charges for each exit gets no rule, and one that has to be ordered from gets it with a rotation.
func TestSellersThatCannotKeepARule(t *testing.T) {
	t.Parallel()
	w := tokens(t)
	w.Seller.Can(func(c *procurement.Capabilities) { c.Workers, c.ViaUpstream = true, true })
	g := passing(100)
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(100)
	for _, product := range []string{"sta_remote", apptest.Remote} {
		_, err := buyWith(t, u, agent, product, clean)
		apptest.Equal(t, "field of "+product, apptest.InvalidFields(err), "require")
		_, err = u.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(product), Require: clean, DryRun: true})
		apptest.Equal(t, "field of a dry run of "+product, apptest.InvalidFields(err), "require")
	}
	apptest.Equal(t, "orders and probes", len(w.Column(`SELECT id FROM sessions`))+int(g.through.Load()), 0)
	s := w.Buy(agent, apptest.Remote)
	rule := tries(10)
	_, err := u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID, Require: &rule})
	apptest.OK(t, err)
	if a := exitOf(t, u, s.ID); !g.passes(a) {
		t.Errorf("rotated to %v", a)
	}
	_, _, err = u.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(1, 3)})
	apptest.OK(t, err)
	for _, name := range named(1, 3) {
		r, err := u.Workers.Worker(t.Context(), s.ID, worker.Parameters{Name: name})
		apptest.OK(t, err)
		if a := addressOf(*r.Upstream); !g.passes(a) {
			t.Errorf("%s has %v", name, a)
		}
	}
}
