package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"agentproxy/adapters/console"
	"agentproxy/app/accounts"
	"agentproxy/app/overview"
	"agentproxy/app/payments"
	"agentproxy/app/throttle"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// world is the console on all use cases, and the browser of a person.
type world struct {
	*apptest.World
	chain   *fake.Chain
	watcher *payments.Watcher
	limits  *throttle.Limits
	console *console.Console
	log     bytes.Buffer
	cookie  *http.Cookie
	headers http.Header // of the last answer
	outage  error       // why it was 503
}

// options are the differences of a world from the default one.
type options struct {
	apptest.Options
	secure bool // outside development mode
	tls    bool // the gateway takes TLS
	raw    bool // the test writes rows that do not add up: the accounts are not audited
	limits throttle.Config
}

func open(t testing.TB, o options) *world {
	t.Helper()
	w := &world{}
	if o.raw {
		w.World, _ = apptest.Start(t, o.Options)
		t.Cleanup(func() { _ = w.DB.Close() })
	} else {
		w.World = apptest.Open(t, o.Options)
	}
	w.restart(o)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	return w
}

// restart makes the console anew, as a restart of the program or another replica does.
func (w *world) restart(o options) {
	w.chain = fake.NewChain("tron-test", fake.Start)
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	w.watcher = payments.NewWatcher(w.Store, w.Clock, w.IDs, w.chain, log)
	w.limits = throttle.New(o.limits, w.Clock, nil, log)
	w.console = console.New(console.Config{GatewayHost: "proxy.test", GatewayPort: 8081, GatewayTLS: o.tls, Dev: !o.secure, Shop: "Proxies of Anna"}, console.Deps{
		Accounts: w.Accounts, Catalog: w.Catalog, Overview: overview.New(w.Store, w.Clock), Sessions: w.Sessions,
		Policies: w.Policies, Wallet: w.Wallet, Stats: w.Stats,
		Recharges: payments.NewOrders(payments.Config{}, w.Store, w.Clock, w.IDs, w.chain, fake.NewKeys("test")),
		Webhooks:  w.Webhooks, Workers: w.Workers, Limits: w.limits, Clock: w.Clock, IDs: w.IDs, Log: log})
}

// send sends a request with the cookie, as a browser does from a page of the console.
func (w *world) send(method, path string, form url.Values, edit ...func(*http.Request)) (int, string) {
	w.T.Helper()
	r := httptest.NewRequest(method, "http://console.test"+path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if w.cookie != nil {
		r.AddCookie(w.cookie)
	}
	for _, e := range edit {
		e(r)
	}
	rec := httptest.NewRecorder()
	_, w.outage = w.console.Serve(rec, r, netip.MustParseAddr("192.0.2.1"))
	w.headers = rec.Header()
	for _, c := range rec.Result().Cookies() {
		w.cookie = c
		if c.MaxAge < 0 {
			w.cookie = nil
		}
	}
	return rec.Code, rec.Body.String()
}

// get reads a page and fails unless it is answered with 200.
func (w *world) get(path string) string {
	w.T.Helper()
	code, body := w.send("GET", path, nil)
	if code != http.StatusOK {
		w.T.Fatalf("GET %s answers %d %s\n%s", path, code, w.headers.Get("Location"), body)
	}
	return body
}

// post sends a form and returns where it leads. It fails unless it leads somewhere.
func (w *world) post(path string, form url.Values) string {
	w.T.Helper()
	code, body := w.send("POST", path, form)
	if code != http.StatusSeeOther {
		w.T.Fatalf("POST %s answers %d\n%s", path, code, body)
	}
	return w.headers.Get("Location")
}

// signIn opens an account with own money and signs in with its key.
func (w *world) signIn(dollars string) accounts.Registered {
	w.T.Helper()
	r := w.RegisterCredentials()
	if dollars != "" {
		_, err := w.Wallet.Adjust(context.Background(), r.Agent.ID, apptest.Dollars(dollars), "for the test")
		apptest.OK(w.T, err)
	}
	w.enter(r.APIKey)
	return r
}

func (w *world) enter(key string) {
	w.T.Helper()
	if to := w.post("/console/sign-in", url.Values{"api_key": {key}}); to != "/console/" {
		w.T.Fatalf("the sign-in leads to %s", to)
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// byID returns the text of the element with an id, up to the end of its tag's kind.
func byID(t testing.TB, body, id string) string {
	t.Helper()
	at := strings.Index(body, ` id="`+id+`"`)
	if at < 0 {
		t.Fatalf("there is no %s in\n%s", id, body)
	}
	start := strings.LastIndex(body[:at], "<")
	kind := strings.FieldsFunc(body[start+1:], func(c rune) bool { return c == ' ' || c == '>' })[0]
	rest := body[at:]
	rest = rest[strings.Index(rest, ">")+1:]
	if kind != "input" {
		rest = rest[:strings.Index(rest, "</"+kind+">")]
	}
	return strings.Join(strings.Fields(tags.ReplaceAllString(rest, " ")), " ")
}

// hidden returns the hidden values of the last form that sends to a path.
func hidden(t testing.TB, body, action string) url.Values {
	t.Helper()
	at := strings.LastIndex(body, `action="`+action+`"`)
	if at < 0 {
		t.Fatalf("no form sends to %s in\n%s", action, body)
	}
	form, _, _ := strings.Cut(body[at:], "</form>")
	values := url.Values{}
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		values.Add(m[1], strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(m[2]))
	}
	return values
}
