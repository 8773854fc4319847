package workers_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// sold buys a session whose workers get their exits at a seller.
func sold(w *apptest.World) (agent, id string) {
	w.Seller.Can(func(c *procurement.Capabilities) { c.Workers, c.ViaUpstream = true, true })
	agent = w.RegisterFunded(100)
	return agent, w.Buy(agent, apptest.Remote).ID
}

func TestASellerReportsALostExit(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, id := sold(w)
	strict, loose := mustUse(w, id, "-session-strict-strict"), mustUse(w, id, "-session-loose")
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	apptest.ErrorIs(t, w.Workers.ReportLost(t.Context(), strict), worker.ErrExitLost)
	apptest.OK(t, w.Workers.ReportLost(t.Context(), loose))
	if moved := mustUse(w, id, "-session-loose"); moved.Turn != 1 || moved.Status() != worker.Active {
		t.Errorf("%+v", moved)
	}
	for range 2 { // what another replica finds later changes nothing
		apptest.ErrorIs(t, w.Workers.ReportLost(t.Context(), strict), worker.ErrExitLost)
		apptest.OK(t, w.Workers.ReportLost(t.Context(), loose))
		_, err := use(w, id, "-session-strict")
		apptest.ErrorIs(t, err, worker.ErrExitLost)
	}
	list, err := w.Sessions.Events(t.Context(), agent, id, domain.Page{Number: 1, Size: 10})
	apptest.OK(t, err)
	lost := map[string]string{}
	for _, e := range list.Items {
		if e.Type == "exit_lost" {
			lost[e.Worker] += e.Message
		}
	}
	if !strings.HasSuffix(lost["strict"], "is gone") || !strings.HasSuffix(lost["loose"], "is gone; the worker moved to another one") {
		t.Errorf("the feed has %q", lost)
	}
	view, err := w.Workers.Get(t.Context(), agent, id, "strict")
	apptest.OK(t, err)
	apptest.Equal(t, "the status", view.Status(), worker.ExitLost)
	rotate(w, agent, id, "strict")
	again := mustUse(w, id, "-session-strict")
	if again.Turn != 1 || again.Lost {
		t.Errorf("after its rotation: %+v", again)
	}
	apptest.OK(t, w.Workers.ReportLost(t.Context(), strict)) // of the exit from before
	apptest.Equal(t, "the worker", mustUse(w, id, "-session-strict"), again)
}

// refusing is a seller that cannot be asked for an exit now.
type refusing struct{ *fake.Provider }

func (refusing) Endpoint(procurement.Access, procurement.Target) (procurement.Endpoint, error) {
	return procurement.Endpoint{}, errors.New("the seller has trouble")
}

// A session whose seller has trouble delays and fails no other one's first uses.
func TestATroubledSellerFailsAlone(t *testing.T) {
	t.Parallel()
	troubled := refusing{fake.NewProvider("troubled")}
	troubled.Can(func(c *procurement.Capabilities) { c.Workers, c.ViaUpstream = true, true })
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{troubled}, Products: []catalog.Product{
		apptest.SharedProduct("dyn_troubled", session.Dynamic, procurement.Source{Provider: "troubled"})}})
	troubled.SetClock(w.Clock.Now)
	good := w.Buy(w.Register(), apptest.Local).ID
	bad := w.Buy(w.RegisterFunded(100), "dyn_troubled").ID
	var mu sync.Mutex
	failed := map[string]int{}
	apptest.Concurrently(40, func(i int) {
		id := []string{good, bad}[i%2]
		if _, err := w.Workers.Worker(t.Context(), id, worker.Parameters{Name: "w" + string(rune('a'+i/2))}); err != nil {
			mu.Lock()
			failed[id]++
			mu.Unlock()
		}
	})
	if failed[good] != 0 || failed[bad] != 20 {
		t.Errorf("%d first uses failed, and %d at the seller with trouble", failed[good], failed[bad])
	}
}

// rotate gives a worker another exit.
func rotate(w *apptest.World, agent, id, name string) {
	w.T.Helper()
	_, _, err := w.Workers.Rotate(w.T.Context(), workers.Rotate{AgentID: agent, SessionID: id, Name: name})
	apptest.OK(w.T, err)
}
