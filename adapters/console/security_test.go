package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestTheCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		w := open(t, options{secure: secure})
		w.signIn("")
		c := w.cookie
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.MaxAge != 12*3600 || c.Path != "/" ||
			strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("outside development mode %v: %+v", secure, c)
		}
		if body := w.get("/console/"); strings.Contains(body, c.Value) {
			t.Error("a page has the sign-in")
		}
		w.Wire(apptest.Options{}, w.Clock, w.IDs)
		w.restart(options{secure: secure})
		w.get("/console/")
		w.Clock.Advance(accounts.SignInLifetime)
		if code, _ := w.send("GET", "/console/money?page=2", nil); code != http.StatusSeeOther || w.cookie != nil ||
			w.headers.Get("Location") != "/console/sign-in?next=%2Fconsole%2Fmoney%3Fpage%3D2" {
			t.Errorf("after 12 hours: %d %v", code, w.headers)
		}
	}
}

func TestWhatEndsASignIn(t *testing.T) {
	w := open(t, options{})
	r := w.signIn("")
	over := func(c *http.Cookie, what string) {
		t.Helper()
		w.cookie = c
		if code, _ := w.send("GET", "/console/", nil); code != http.StatusSeeOther {
			t.Errorf("after %s a page answers %d", what, code)
		}
	}
	first := w.cookie
	w.enter(r.APIKey)
	second := w.cookie
	if to := w.post("/console/sign-out", url.Values{}); to != "/console/sign-in" || w.cookie != nil {
		t.Errorf("signing out leads to %s with %v", to, w.cookie)
	}
	over(second, "signing out")
	w.cookie = first
	w.get("/console/")
	code, body := w.send("POST", "/console/access/rotate-secret", url.Values{})
	secret := byID(t, body, "shown-once")
	if code != http.StatusOK || w.cookie != nil {
		t.Errorf("rotating the secret: %d, %v", code, w.cookie)
	}
	if _, err := w.Accounts.IssueToken(context.Background(), accounts.IssueToken{APIKey: r.APIKey, APISecret: secret}); err != nil {
		t.Errorf("the secret that was shown: %v", err)
	}
	over(first, "rotating the secret")
	w.enter(r.APIKey)
	kept := w.cookie
	apptest.OK(t, w.Accounts.Disable(context.Background(), r.Agent.ID, "abuse"))
	w.cookie = kept
	if code, body := w.send("GET", "/console/", nil); code != http.StatusForbidden || !strings.Contains(body, "ACCOUNT_DISABLED") {
		t.Errorf("a disabled account: %d", code)
	}
	over(&http.Cookie{Name: "console", Value: "forged"}, "forging one")
}

func TestSignInIsRefused(t *testing.T) {
	w := open(t, options{limits: throttle.Config{WrongKeysPerMinute: 3}})
	key := w.RegisterCredentials().APIKey
	for range 3 {
		if code, body := w.send("POST", "/console/sign-in", url.Values{"api_key": {"ak_wrong"}}); code != http.StatusUnauthorized ||
			w.cookie != nil || strings.Contains(body, "ak_wrong") {
			t.Errorf("a wrong key: %d\n%s", code, body)
		}
	}
	if code, _ := w.send("POST", "/console/sign-in", url.Values{"api_key": {"ak_wrong"}}); code != http.StatusTooManyRequests ||
		w.headers.Get("Retry-After") == "" || w.cookie != nil {
		t.Errorf("after too many: %d %v", code, w.headers)
	}
	w.enter(key) // it is right, and the guesses are not its own
}

// The error behind a page that is answered 503 is returned, so that it can be logged and counted.
func TestAnOutageIsReturned(t *testing.T) {
	w := open(t, options{})
	r := w.signIn("")
	w.get("/console/")
	if w.outage != nil {
		t.Errorf("a page that is shown: %v", w.outage)
	}
	signedIn := w.cookie
	w.Store.Store = away{w.Store.Store}
	for _, c := range []struct {
		path string
		form url.Values
	}{
		{"/console/sign-in", url.Values{"api_key": {r.APIKey}}},
		{"/console/money", nil},
		{"/console/sign-out", url.Values{}},
	} {
		method := http.MethodPost
		if c.form == nil {
			method = http.MethodGet
		}
		w.cookie = signedIn
		if code, _ := w.send(method, c.path, c.form); code != http.StatusServiceUnavailable || !errors.Is(w.outage, apptest.ErrStore) {
			t.Errorf("%s %s: %d, %v", method, c.path, code, w.outage)
		}
	}
}

// away is a store that cannot be reached.
type away struct{ ports.Store }

func (away) View(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error {
	return apptest.ErrStore
}

func (away) Update(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error {
	return apptest.ErrStore
}

func TestTheSignInLeadsBackIntoTheConsoleAlone(t *testing.T) {
	w := open(t, options{})
	key := w.RegisterCredentials().APIKey
	for next, want := range map[string]string{
		"/console/money?page=2": "/console/money?page=2",
		"":                      "/console/",
		"https://evil.test/":    "/console/",
		"//evil.test/console/":  "/console/",
		`/console/\evil.test`:   "/console/",
		"/console/../v1/health": "/console/",
		"javascript:alert(1)":   "/console/",
		"/elsewhere":            "/console/",
	} {
		if got := w.post("/console/sign-in", url.Values{"api_key": {key}, "next": {next}}); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	w := open(t, options{})
	r := w.signIn("5")
	s := w.Buy(r.Agent.ID, apptest.Local)
	cookie := w.cookie
	for _, path := range []string{"/console/sign-in", "/console/sign-out", "/console/sessions", "/console/sessions/" + s.ID + "/end",
		"/console/sessions/" + s.ID + "/rotate", "/console/money/budget", "/console/money/recharges", "/console/access/rotate-secret"} {
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.test"} {
			before := w.Dump()
			code, _ := w.send("POST", path, url.Values{"api_key": {r.APIKey}, "key": {"form_1"}}, header("Sec-Fetch-Site", ""), func(r *http.Request) {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set(name, value)
			})
			if code != http.StatusForbidden || w.cookie != cookie || w.Dump() != before {
				t.Errorf("%s with %s: %s answers %d", path, name, value, code)
			}
		}
	}
}

func TestWhatBelongsToOthersIsNotFound(t *testing.T) {
	w := open(t, options{})
	theirs := w.signIn("50")
	s, static := w.Buy(theirs.Agent.ID, apptest.Local), w.Buy(theirs.Agent.ID, apptest.Static)
	order := strings.Split(strings.TrimPrefix(w.post("/console/money/recharges", url.Values{"key": {"form_1"}, "amount": {"10"}}),
		"/console/money/recharges/"), "?")[0]
	w.cookie = nil
	w.signIn("50")
	form := url.Values{"key": {"form_2"}, "duration_days": {"30"}}
	for _, c := range []struct{ method, path string }{
		{"GET", "/console/sessions/" + s.ID}, {"GET", "/console/sessions/" + s.ID + "?reveal=1"},
		{"GET", "/console/sessions/" + s.ID + "/end"}, {"POST", "/console/sessions/" + s.ID + "/end"},
		{"POST", "/console/sessions/" + s.ID + "/rotate"}, {"GET", "/console/sessions/" + static.ID + "/renew"},
		{"POST", "/console/sessions/" + static.ID + "/renew"}, {"GET", "/console/money/recharges/" + order},
		{"GET", "/console/money/recharges/" + order + "/qr.png"}, {"POST", "/console/access/deliveries/dlv_1/redeliver"},
		{"GET", "/console/sessions/%3Cscript%3E"}, {"GET", "/console/nothing"},
	} {
		before := w.Read(theirs.Agent.ID, s.ID).Status
		code, body := w.send(c.method, c.path, form)
		if code != http.StatusNotFound || strings.Contains(body, s.Password) || w.Read(theirs.Agent.ID, s.ID).Status != before {
			t.Errorf("%s %s answers %d", c.method, c.path, code)
		}
	}
}

func TestAKeyThatMayLess(t *testing.T) {
	w := open(t, options{})
	r := w.RegisterCredentials()
	c, err := w.Accounts.AuthenticateKey(context.Background(), r.APIKey, nil)
	apptest.OK(t, err)
	_, key, err := w.Accounts.Keys.Create(context.Background(), c, accounts.NewKey{Name: "reader",
		Scopes: []account.Scope{account.AccountRead, account.SessionsRead, account.ProductsRead}})
	apptest.OK(t, err)
	w.enter(key)
	body := w.get("/console/")
	if strings.Contains(body, `id="balance"`) || strings.Contains(body, "/console/money") || !strings.Contains(body, `id="active-sessions"`) {
		t.Errorf("the overview is\n%s", body)
	}
	if body := w.get("/console/sessions"); strings.Contains(body, `id="buy"`) {
		t.Error("the list offers to buy")
	}
	for method, path := range map[string]string{"GET": "/console/money", "POST": "/console/sessions"} {
		if code, body := w.send(method, path, url.Values{}); code != http.StatusForbidden || !strings.Contains(body, "permission") {
			t.Errorf("%s %s answers %d", method, path, code)
		}
	}
}

func TestPagesCountAgainstTheLimit(t *testing.T) {
	w := open(t, options{Options: apptest.Options{PerMinute: 3}})
	w.signIn("")
	w.get("/console/")
	w.get("/console/")
	if code, _ := w.send("GET", "/console/", nil); code != http.StatusTooManyRequests || w.headers.Get("Retry-After") == "" {
		t.Errorf("the fourth request answers %d", code)
	}
}

func TestThePasswordIsShownOnDemandAlone(t *testing.T) {
	w := open(t, options{})
	s := w.Buy(w.signIn("5").Agent.ID, apptest.Local)
	if body := w.get("/console/sessions/" + s.ID); strings.Contains(body, s.Password) || !strings.Contains(byID(t, body, "proxy-0"), ":***@proxy.test:8081") {
		t.Error("the page has the password, or no proxy")
	}
	body := w.get("/console/sessions/" + s.ID + "?reveal=1")
	for _, id := range []string{"proxy-0", "snippet-curl", "snippet-playwright"} {
		if !strings.Contains(byID(t, body, id), s.Password) {
			t.Errorf("%s has no password", id)
		}
	}
	if w.headers.Get("Cache-Control") != "no-store" {
		t.Errorf("the page is kept: %v", w.headers)
	}
}

// TestThePageHasTheAddressWithTLS shows it beside the other, with the password hidden in both, and snippets that use it.
func TestThePageHasTheAddressWithTLS(t *testing.T) {
	w := open(t, options{tls: true})
	s := w.Buy(w.signIn("5").Agent.ID, apptest.Local)
	body := w.get("/console/sessions/" + s.ID)
	for id, want := range map[string]string{"proxy-0": "http://", "secure-0": "https://", "snippet-curl": "https://",
		"snippet-playwright": "https://", "snippet-env": "http://"} {
		if text := byID(t, body, id); !strings.Contains(text, want) || strings.Contains(text, s.Password) {
			t.Errorf("%s is %s, want %s", id, text, want)
		}
	}
	if revealed := w.get("/console/sessions/" + s.ID + "?reveal=1"); !strings.Contains(byID(t, revealed, "secure-0"), s.Password) {
		t.Error("the revealed address has no password")
	}
	if !strings.Contains(body, "No TLS to the proxy: many programs") {
		t.Error("no reason is shown for variables without TLS")
	}
	plain := open(t, options{})
	s = plain.Buy(plain.signIn("5").Agent.ID, apptest.Local)
	if body := plain.get("/console/sessions/" + s.ID); strings.Contains(body, "secure-0") || strings.Contains(body, "No TLS") {
		t.Error("a gateway without a certificate has an address with TLS")
	}
}
