package console_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"agentproxy/app/workers"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

// form is a form as a browser without scripts sends it.
type form struct {
	method, action string
	fields         url.Values
}

// formsOf returns the forms of a page with what their fields have at first.
func formsOf(t testing.TB, body string) (list []form) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	apptest.OK(t, err)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := form{attribute(n, "method"), attribute(n, "action"), url.Values{}}
		for in := range n.Descendants() {
			name := attribute(in, "name")
			switch {
			case in.Type != html.ElementNode || name == "":
			case in.Data == "select":
				f.fields.Set(name, chosen(in))
			case attribute(in, "type") != "checkbox":
				f.fields.Set(name, attribute(in, "value"))
			}
		}
		list = append(list, f)
	}
	return list
}

// chosen returns the value of the option that a list shows at first, or the first one with
// which a browser sends a list that is required.
func chosen(list *html.Node) (value string) {
	first, required := true, has(list, "required")
	for o := range list.Descendants() {
		if o.Type != html.ElementNode || o.Data != "option" {
			continue
		}
		text := attribute(o, "value")
		if !has(o, "value") {
			text = o.FirstChild.Data
		}
		if first || has(o, "selected") {
			value, first = text, required && text == ""
		}
	}
	return value
}

func has(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// kindOf replaces the ids in an address.
func kindOf(action string) string {
	return regexp.MustCompile(`/(sess|del|evt|whd|dlv|key)_[A-Za-z0-9_]+`).ReplaceAllString(action, "/*")
}

// TestEveryFormTakesEffectOnce sends every form of every page twice, as it is and with what a
// person types.
func TestEveryFormTakesEffectOnce(t *testing.T) {
	w := open(t, options{})
	id, ctx := w.registerWithHook(), context.Background()
	key := w.RegisterCredentials().APIKey
	w.newKey("other", account.SessionsRead)
	_, err := w.Wallet.Adjust(ctx, id, apptest.Dollars("60"), "for the test")
	apptest.OK(t, err)
	dyn, static := "/console/sessions/"+w.Buy(id, apptest.Local).ID, "/console/sessions/"+w.Buy(id, apptest.Static).ID
	_, _, err = w.Workers.Create(ctx, workers.Create{AgentID: id,
		SessionID: strings.TrimPrefix(dyn, "/console/sessions/"), Names: []string{"one"}})
	apptest.OK(t, err)
	w.post("/console/access/webhook/test", url.Values{"key": {"form_1"}})

	quote := "/console/sessions/quote?product_no=" + apptest.Local + "&traffic_gb=1"
	steps := []struct{ page, action, typed, to string }{
		{quote, "/console/sessions", "", "/console/sessions/*?done=bought"},
		{dyn, dyn + "/rotate", "reason=http_403&close_connections=yes", dyn + "?done=rotated"},
		{dyn, dyn + "/workers/one/rotate", "", dyn + "?done=worker-rotated"},
		{dyn + "/password", dyn + "/password", "", dyn + "?done=password"},
		{static + "/renew", static + "/renew", "", static + "?done=renewed"},
		{dyn + "/end", dyn + "/end", "", dyn + "?done=ended"},
		{"/console/money", "/console/money/recharges", "amount=12.5", "/console/money/recharges/"},
		{"/console/money", "/console/money/budget", "daily_limit=5&paused=yes", "/console/money?done=budget"},
		{"/console/access", "/console/access/webhook/test", "", "/console/access?done=tested"},
		{"/console/access", "/console/access/deliveries/*/redeliver", "", "/console/access?done=redelivered"},
		{"/console/access", "/console/access/account", "name=renamed", "/console/access?done=account"},
		{"/console/access", "/console/access/webhook", "webhook_url=https://example.com/other", "/console/access?done=webhook"},
		{w.keyPath(), "/console/access/keys/*", "total=2", "/console/access/keys/*?done=key"},
		{w.revokePath(), "/console/access/keys/*/revoke", "", "/console/access?done=revoked"},
		{"/console/access/keys/new", "/console/access/keys", "name=ci&permission=sessions:read", ""},
		{"/console/access/webhook/rotate-secret", "/console/access/webhook/rotate-secret", "", ""},
		{"/console/register", "/console/register", "name=another", ""},
		{"/console/access/rotate-secret", "/console/access/rotate-secret", "", ""},
		{"/console/sign-in", "/console/sign-in", "api_key=" + key, "/console/"},
		{"/console/access", "/console/sign-out", "", "/console/sign-in"},
	}
	unsent := w.everyForm(quote, dyn, static)
	delete(unsent, "/console/sessions/proxies") // a file
	for _, s := range steps {
		delete(unsent, kindOf(s.action))
		w.sendTwice(s.page, s.action, s.typed, s.to)
	}
	if len(unsent) > 0 {
		t.Errorf("the test does not send %v", unsent)
	}
}

// everyForm returns what the forms of all pages post to, and sends those that only ask as they are.
func (w *world) everyForm(quote, dyn, static string) map[string]bool {
	w.T.Helper()
	posts := map[string]bool{"/console/sign-in": true, "/console/register": true}
	for _, path := range []string{"/console/", "/console/sessions", "/console/sessions/new", quote, dyn, static,
		"/console/sessions/new?product_no=" + apptest.Local, "/console/sessions/new?product_no=" + apptest.Static, dyn + "/end",
		dyn + "/password", static + "/renew", "/console/money", "/console/access", "/console/access/rotate-secret", "/console/access/keys/new",
		"/console/access/webhook/rotate-secret", "/console/access/keys", w.keyPath(), w.revokePath()} {
		for _, f := range formsOf(w.T, w.get(path)) {
			if f.method == "post" {
				posts[kindOf(f.action)] = true
				continue
			}
			to, _, _ := strings.Cut(f.action, "#")
			w.get(to + "?" + f.fields.Encode())
		}
	}
	return posts
}

// sendTwice sends a form of a page twice, a second apart. The second one must change nothing and
// lead to where the first one led.
func (w *world) sendTwice(page, action, typed, to string) {
	w.T.Helper()
	var sent *form
	for _, f := range formsOf(w.T, w.get(page)) {
		if f.method == "post" && (f.action == action || kindOf(f.action) == action) {
			sent = &f
			break
		}
	}
	if sent == nil {
		w.T.Errorf("%s has no form for %s", page, action)
		return
	}
	more, err := url.ParseQuery(typed)
	apptest.OK(w.T, err)
	for name := range more {
		sent.fields.Set(name, more.Get(name))
	}
	before := w.Dump()
	code, body := w.send("POST", sent.action, sent.fields)
	first, at := w.Dump(), w.headers.Get("Location")
	if code >= http.StatusBadRequest || (code == http.StatusSeeOther) != (to != "") || !strings.HasPrefix(at, to) && kindOf(at) != kindOf(to) {
		w.T.Errorf("%s: %d leads to %q, want %q\n%s", action, code, at, to, body)
	}
	if first == before {
		w.T.Errorf("%s: the form changes nothing", action)
	}
	switch action {
	case "/console/sign-in", "/console/register", "/console/access/keys", "/console/access/webhook/rotate-secret":
		return // a second one is one of its own: what is shown once cannot be shown again
	case "/console/access/account", "/console/access/webhook", "/console/access/keys/*":
		return // a second one sets the same again
	}
	w.Clock.Advance(time.Second)
	code, body = w.send("POST", sent.action, sent.fields)
	if second := w.Dump(); code != http.StatusSeeOther || second != first {
		w.T.Errorf("%s: the second time answers %d, and changes nothing more: %t\n%s", action, code, second == first, body)
	}
	if again := w.headers.Get("Location"); to != "" && again != at {
		w.T.Errorf("%s: the second time leads to %q, the first to %q", action, again, at)
	}
}
