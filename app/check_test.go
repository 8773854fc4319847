package app_test

import (
	"context"
	"testing"
	"time"

	catalogapp "agentproxy/app/catalog"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type echo struct{ err error }

func (e echo) Probe(context.Context, string) (ports.Probe, error) {
	return ports.Probe{ExitIP: "10.0.0.1", Latency: time.Millisecond}, e.err
}

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v, later := w.buy(agent, local), w.buy(agent, localLater)
	checks := sessions.NewChecks(w.sessions, echo{})
	got, err := checks.Check(t.Context(), agent, v.ID)
	ok(t, err)
	same(t, "seen", got, sessions.Checked{Probe: ports.Probe{ExitIP: "10.0.0.1", Latency: time.Millisecond}, Country: v.Location.Country, Protocol: session.HTTP})
	_, err = checks.Check(t.Context(), agent, later.ID)
	refused(t, err, session.ErrNotReady)
	_, err = checks.Check(t.Context(), w.register(), v.ID)
	refused(t, err, session.ErrNotFound)
	_, err = sessions.NewChecks(w.sessions, echo{ports.ErrProvider}).Check(t.Context(), agent, v.ID)
	refused(t, err, ports.ErrProvider)
	_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	_, err = checks.Check(t.Context(), agent, v.ID)
	refused(t, err, session.ErrOver)
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 20})
	if all.Total != 9 || all.Items[0].No != localLater || all.Items[8].No != "gone" {
		t.Errorf("listed %+v", all)
	}
	page := w.catalog.Products(catalog.Filter{Type: session.Static, AvailableOnly: true}, domain.Page{Number: 2, Size: 3})
	if page.Total != 4 || len(page.Items) != 1 || page.Items[0].No != "sta_async" {
		t.Errorf("listed %+v", page)
	}
	if past := w.catalog.Products(catalog.Filter{}, domain.Page{Number: 9, Size: 100}); past.Total != 9 || len(past.Items) != 0 {
		t.Errorf("past the end: %+v", past)
	}
	if regions := w.catalog.Regions(); len(regions) != 249 || regions[0].Name == "" {
		t.Errorf("%d regions", len(regions))
	}
	best, err := w.catalog.Recommend(catalog.Criteria{UseCase: "web_scraping"})
	ok(t, err)
	if len(best) == 0 {
		t.Error("nothing is recommended")
	}
	if _, err := catalogapp.New([]ports.Provider{w.seller}, append(w.seller.Products(), w.seller.Products()...), nil); err == nil {
		t.Error("a catalogue that sells a code twice is taken")
	}
}
