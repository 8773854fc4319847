package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

var rowID = regexp.MustCompile(`<tr id="session-(sess_[a-z0-9]+)"`)

// listed returns the ids of the sessions that a page of the list has, in its order.
func listed(body string) (ids []string) {
	for _, m := range rowID.FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func TestTheListOfSessionsIsSearchedAndSorted(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("60").Agent.ID
	dyn, first := w.Buy(id, apptest.Local), w.Buy(id, apptest.Static)
	w.Clock.Advance(time.Hour)
	second := w.Buy(id, apptest.Static)
	ended := w.Buy(id, apptest.Local)
	_, err := w.Sessions.Terminate(context.Background(), id, ended.ID)
	apptest.OK(t, err)
	w.UseBytes(dyn.ID, "one", 5_000_000)
	row := byID(t, w.get("/console/sessions"), "session-"+first.ID)
	if !strings.Contains(row, first.Exits[0].IP.String()) || !strings.Contains(row, first.ExpiresAt.Format(time.DateTime)) {
		t.Errorf("the list shows no address and no end of a static session: %s", row)
	}
	for query, want := range map[string][]string{
		"":                                   {ended.ID, second.ID, first.ID, dyn.ID},
		"sort=ends":                          {first.ID, second.ID, dyn.ID},
		"sort=used":                          {dyn.ID, second.ID, first.ID},
		"q=" + first.Exits[0].IP.String():    {first.ID},
		"q=" + dyn.ID[len(dyn.ID)-6:]:        {dyn.ID},
		"q=" + ended.ID:                      {ended.ID},
		"q=sess_none":                        nil,
		"q=%25":                              nil,
		"product=" + apptest.Static:          {second.ID, first.ID},
		"type=static&sort=ends":              {first.ID, second.ID},
		"status=terminated&type=dynamic":     {ended.ID},
		"country=zz":                         nil,
		"country=" + first.Location.Country:  {second.ID, first.ID},
		"sort=ends&product=" + apptest.Local: {dyn.ID},
	} {
		if got := listed(w.get("/console/sessions?" + query)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q lists %v, want %v", query, got, want)
		}
	}
	other := w.RegisterFunded(5)
	theirs := w.Buy(other, apptest.Local)
	for _, query := range []string{theirs.ID, theirs.ID[len(theirs.ID)-6:], theirs.Exits[0].IP.String()} {
		if body := w.get("/console/sessions?q=" + query); strings.Contains(body, `id="session-`+theirs.ID) {
			t.Errorf("%s finds another agent's session", query)
		}
	}
	for query, want := range map[string]string{"sort=price": "sort", "q=" + strings.Repeat("1", 65): "q"} {
		if code, body := w.send("GET", "/console/sessions?"+query, nil); code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), want) {
			t.Errorf("%s: %d", query, code)
		}
	}
}

func TestSeveralSessionsEndAtOnce(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("60").Agent.ID
	dyn, static, kept := w.Buy(id, apptest.Local), w.Buy(id, apptest.Static), w.Buy(id, apptest.Local)
	if body := w.get("/console/sessions"); strings.Count(body, `name="id" value="sess_`) != 3 || !strings.Contains(body, `id="end-chosen"`) {
		t.Errorf("the sessions cannot be chosen:\n%s", body)
	}
	body := w.get("/console/sessions/end?id=" + dyn.ID + "&id=" + static.ID)
	if byID(t, body, "back") != "$0.40" || byID(t, body, "forfeited") != "$1.00" {
		t.Errorf("what ending both costs is not shown:\n%s", body)
	}
	if w.Read(id, dyn.ID).Status != session.Active {
		t.Error("the question has ended a session")
	}
	var form url.Values
	for _, f := range formsOf(t, body) {
		if f.action == "/console/sessions/end" {
			form = url.Values{"id": {dyn.ID, static.ID}}
		}
	}
	var before string
	for range 2 {
		if to := w.post("/console/sessions/end", form); to != "/console/sessions?done=ended-all" {
			t.Errorf("ending both leads to %s", to)
		}
		if after := w.Dump(); before != "" && after != before {
			t.Error("the second time ends more")
		} else {
			before = after
		}
	}
	for of, want := range map[string]session.Status{dyn.ID: session.Terminated, static.ID: session.Terminated, kept.ID: session.Active} {
		if got := w.Read(id, of).Status; got != want {
			t.Errorf("%s is %s, want %s", of, got, want)
		}
	}
	theirs := w.Buy(w.RegisterFunded(5), apptest.Local)
	for _, method := range []string{"GET", "POST"} {
		path := "/console/sessions/end"
		if method == "GET" {
			path += "?id=" + theirs.ID
		}
		if code, _ := w.send(method, path, url.Values{"id": {theirs.ID}}); code != http.StatusNotFound {
			t.Errorf("%s of another agent's session: %d", method, code)
		}
	}
	many := url.Values{"id": strings.Split(strings.Repeat(kept.ID+",", 101), ",")}
	if code, _ := w.send("POST", "/console/sessions/end", many); code != http.StatusBadRequest {
		t.Errorf("a hundred and one: %d", code)
	}
}

func TestTheProxyListIsDownloaded(t *testing.T) {
	w := open(t, options{})
	id := w.signIn("60").Agent.ID
	dyn, static, ended := w.Buy(id, apptest.Local), w.Buy(id, apptest.Static), w.Buy(id, apptest.Local)
	_, err := w.Sessions.Terminate(context.Background(), id, ended.ID)
	apptest.OK(t, err)
	theirs := w.Buy(w.RegisterFunded(5), apptest.Local)
	download := func(form url.Values) []string {
		t.Helper()
		code, body := w.send("POST", "/console/sessions/proxies", form)
		if code != http.StatusOK || w.headers.Get("Cache-Control") != "no-store" || !strings.HasPrefix(w.headers.Get("Content-Type"), "text/plain") ||
			!strings.HasPrefix(w.headers.Get("Content-Disposition"), "attachment") {
			t.Fatalf("the list answers %d %v\n%s", code, w.headers, body)
		}
		return strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	}
	line := func(user, password string) string { return "proxy.test:8081:" + user + ":" + password }
	got := download(url.Values{"sort": {"ends"}})
	want := []string{line("ip-"+static.ID+"-0", static.Password), line(dyn.ID+"-r0", dyn.Password)}
	t.Log(got)
	if len(got) != 2 || !strings.Contains(got[0], static.Password) || !strings.Contains(got[1], dyn.Password) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	for _, l := range got {
		if strings.Contains(l, theirs.Password) || strings.Contains(l, ended.Password) || strings.Count(l, ":") != 3 {
			t.Errorf("a line is %q", l)
		}
	}
	if got := download(url.Values{"type": {"static"}}); len(got) != 1 || !strings.Contains(got[0], static.Password) {
		t.Errorf("of the static ones the lines are %q", got)
	}
	for range 101 { // more than one page
		_, err := w.Wallet.Adjust(context.Background(), id, apptest.Dollars("1"), "for the test")
		apptest.OK(t, err)
		w.Buy(id, apptest.Local)
	}
	for _, form := range []url.Values{{"type": {"dynamic"}}, {"type": {"dynamic"}, "sort": {"used"}}} {
		if got := download(form); len(got) != 102 {
			t.Errorf("%v: the list has %d lines", form, len(got))
		}
	}
	if code, _ := w.send("GET", "/console/sessions/proxies", nil); code == http.StatusOK {
		t.Error("the passwords are at an address that browsers remember")
	}
}

// What a page reads and a form ends is charged like calls: one more for each 25 items beyond the first 25.
func TestWhatTheConsoleReadsAndEndsIsCharged(t *testing.T) {
	t.Parallel()
	const limit = 600
	w := open(t, options{Options: apptest.Options{PerMinute: limit}})
	id := w.signIn("1000").Agent.ID
	ids := url.Values{}
	for range 60 {
		ids.Add("id", w.Buy(id, apptest.Local).ID)
	}
	left := func() int { return w.limits.Take(id, limit).Remaining }
	cost := func(want int, what, method, path string, form url.Values) {
		t.Helper()
		before := left()
		if code, body := w.send(method, path, form); code >= 400 {
			t.Errorf("%s answers %d: %s", what, code, body)
		}
		if got := before - left() - 1; got != want {
			t.Errorf("%s costs %d, want %d", what, got, want)
		}
	}
	cost(1, "a page of the list", "GET", "/console/sessions", nil)
	cost(1+2, "the proxies of 60 sessions", "POST", "/console/sessions/proxies", url.Values{})
	cost(1+2, "the question whether 60 end", "GET", "/console/sessions/end?"+ids.Encode(), nil)
	cost(1+3, "the ledger of 61 entries", "GET", "/console/money/ledger.csv", nil)
	w.limits.TakeMore(id, limit, left()-2) // 2 are left, one for the request
	if code, _ := w.send("POST", "/console/sessions/end", ids); code != http.StatusTooManyRequests {
		t.Errorf("ending 60 beyond the limit answers %d", code)
	}
	w.Clock.Advance(time.Minute)
	list, err := w.Sessions.List(context.Background(), sessions.List{AgentID: id, Filter: ports.SessionFilter{Status: session.Active},
		Page: domain.Page{Number: 1, Size: 100}})
	if err != nil || list.Total != 60 {
		t.Errorf("%d sessions live after a refusal, %v", list.Total, err)
	}
	cost(1+2, "ending 60", "POST", "/console/sessions/end", ids)
}
