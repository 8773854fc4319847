package sessions_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

type fakeProber struct{ err error }

func (e fakeProber) Probe(_ context.Context, of exit.Ref) (ports.Probe, error) {
	if of.Worker != "" {
		return ports.Probe{ExitIP: "10.0.0.2", DeclaredCountry: "DE"}, e.err
	}
	return ports.Probe{ExitIP: "10.0.0.1", Latency: time.Millisecond}, e.err
}

// fakeFacts has a place for one address.
type fakeFacts struct{}

func (fakeFacts) Facts(_ context.Context, addr netip.Addr) exit.Known {
	if addr.String() == "10.0.0.2" {
		return exit.Known{Country: "LT", Listed: []string{}}
	}
	return exit.Known{}
}

func (fakeFacts) Any() bool { return true }

func (fakeFacts) Can() exit.Fields { return exit.Fields{Country: true, Listed: true} }

func TestCheck(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v, later := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.LocalAsync)
	checks := sessions.NewChecks(w.Sessions, fakeProber{}, fakeFacts{}, w.Clock)
	got, err := checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "seen", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", sessions.Checked{Latency: time.Millisecond, Protocol: session.HTTP, Exit: exit.Measured{
		IP: netip.MustParseAddr("10.0.0.1"), At: w.Clock.Now(), Declared: v.Location.Country}}))
	got, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID, Worker: "w1"})
	apptest.OK(t, err)
	apptest.Equal(t, "seen", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", sessions.Checked{Protocol: session.HTTP, Exit: exit.Measured{IP: netip.MustParseAddr("10.0.0.2"), At: w.Clock.Now(),
		Declared: "DE", Known: exit.Known{Country: "LT", Listed: []string{}}}}))
	for id, name := range map[string]string{v.ID: "w-1", w.Buy(agent, apptest.Static).ID: "w1"} {
		_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: id, Worker: name})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: later.ID})
	apptest.ErrorIs(t, err, session.ErrNotReady)
	_, err = checks.Check(t.Context(), sessions.Check{AgentID: w.Register(), SessionID: v.ID})
	apptest.ErrorIs(t, err, session.ErrNotFound)
	_, err = sessions.NewChecks(w.Sessions, fakeProber{ports.ErrProvider}, fakeFacts{}, w.Clock).Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID})
	apptest.ErrorIs(t, err, ports.ErrProvider)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	_, err = checks.Check(t.Context(), sessions.Check{AgentID: agent, SessionID: v.ID})
	apptest.ErrorIs(t, err, session.ErrOver)
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	all := w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 20})
	if all.Total != 9 || all.Items[0].No != apptest.LocalAsync || all.Items[8].No != "gone" {
		t.Errorf("listed %+v", all)
	}
	page := w.Catalog.Products(catalog.Filter{Type: session.Static, AvailableOnly: true}, domain.Page{Number: 2, Size: 3})
	if page.Total != 4 || len(page.Items) != 1 || page.Items[0].No != "sta_async" {
		t.Errorf("listed %+v", page)
	}
	if past := w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 9, Size: 100}); past.Total != 9 || len(past.Items) != 0 {
		t.Errorf("past the end: %+v", past)
	}
	if regions := w.Catalog.Regions(); len(regions) != 249 || regions[0].Name == "" {
		t.Errorf("%d regions", len(regions))
	}
	best, err := w.Catalog.Recommend(catalog.Criteria{UseCase: "web_scraping"})
	apptest.OK(t, err)
	if len(best) == 0 {
		t.Error("nothing is recommended")
	}
	if _, err := catalogs.New([]ports.Provider{w.Seller}, append(w.Seller.Products(), w.Seller.Products()...), nil); err == nil {
		t.Error("a catalogue that sells a code twice is taken")
	}
}
