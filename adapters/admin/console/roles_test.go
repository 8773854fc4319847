package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentproxy/adapters/admin/console"
	"agentproxy/adapters/admin/signin"
	"agentproxy/app/payments"
	"agentproxy/domain"
	. "agentproxy/test/apptest"
)

// A user with the role read sees every page, without a way to any form, and does nothing.
func TestAReaderDoesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	agent := w.RegisterFunded(50)
	s := w.Buy(agent, Static)
	order, err := w.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: 5 * domain.Dollar})
	OK(t, err)
	_, err = w.Referrers.Add(t.Context(), "Partner", "PARTNER")
	OK(t, err)
	frozen := w.undecided(agent)
	hold := url.Values{"from": {"2026-02-01"}, "to": {"2026-02-03"}, "reason": {"police"}, "sure": {"yes"}}
	if rec := w.post("/do/exits-hold", hold, ""); rec.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	pages := []string{"/", "/agents", "/agents/" + agent, "/agents/referrers", "/sessions", "/sessions/" + s.ID, "/sessions/" + frozen.SessionID,
		"/money", "/recharges", "/recharges/" + order.View.ID, "/recharges/addresses", "/sellers", "/sellers/remote", "/jobs", "/exits", "/exits/quality", "/policy",
		"/audit", "/nothing"}
	links := 0
	for _, path := range pages {
		_, body := w.get(path)
		links += strings.Count(body, `="/do/`)
	}
	if links < 20 {
		t.Errorf("for who acts the pages have %d links to forms", links)
	}
	w.user = signin.User{Name: "rob", Role: signin.Read}
	for _, path := range pages {
		code, body := w.get(path)
		if want := map[bool]int{true: 404, false: 200}[path == "/nothing"]; code != want || strings.Contains(body, "/do/") || !strings.Contains(body, `>rob<`) {
			t.Errorf("%s: %d, or it leads to a form, or does not name the user:\n%s", path, code, body)
		}
	}
	for _, path := range []string{"/agents.csv", "/recharges/addresses.csv"} {
		if code, _ := w.get(path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	before := w.Dump()
	for form := range console.Commands() {
		code, body := w.get("/do/" + form + "?subject=" + agent)
		sent := w.post("/do/"+form, url.Values{"subject": {agent}, "sure": {"yes"}, "reason": {"x"}, "amount": {"5"}, "file": {"x.db"}}, "")
		if code != http.StatusForbidden || sent.Code != http.StatusForbidden || strings.Contains(body+sent.Body.String(), "<form method=\"post\" action=\"/do/") {
			t.Errorf("%s answers %d, and when it is sent %d", form, code, sent.Code)
		}
	}
	Equal(t, "nothing is changed", w.Dump() == before, true)
}

// The console serves no request that came past the sign-in.
func TestWithoutAUserTheConsoleServesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.user = signin.User{}
	for _, path := range []string{"/", "/agents", "/do/adjust", "/nothing", "/agents.csv"} {
		if code, body := w.get(path); code != http.StatusUnauthorized || strings.Contains(body, "<nav") {
			t.Errorf("%s: %d", path, code)
		}
		if rec := w.post(path, url.Values{}, ""); rec.Code != http.StatusUnauthorized {
			t.Errorf("POST %s: %d", path, rec.Code)
		}
	}
}
