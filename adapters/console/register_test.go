package console_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

func TestAPersonOpensAnAccount(t *testing.T) {
	w := open(t, options{Options: apptest.Options{Accounts: func(c *accounts.Config) { c.KeepOriginDays = 1 }}})
	if body := w.get("/console/sign-in"); !strings.Contains(body, `href="/console/register"`) || !strings.Contains(body, `href="/docs/quickstart.md"`) {
		t.Errorf("the sign-in offers no account, or no help:\n%s", body)
	}
	if body := w.get("/console/register"); !strings.Contains(body, "<title>Open an account · Proxies of Anna</title>") {
		t.Errorf("the page does not name the shop:\n%s", body)
	}
	code, body := w.send("POST", "/console/register", url.Values{"name": {"Price watcher"}, "contact_email": {"ops@example.com"}})
	if code != http.StatusOK || w.headers.Get("Cache-Control") != "no-store" {
		t.Fatalf("opening an account answers %d %v\n%s", code, w.headers, body)
	}
	key, secret := byID(t, body, "api-key"), byID(t, body, "api-secret")
	if _, err := w.Accounts.IssueToken(context.Background(), accounts.IssueToken{APIKey: key, APISecret: secret}); err != nil {
		t.Errorf("what the page shows is refused: %v", err)
	}
	body = w.get("/console/") // the registration has signed in
	if strings.Contains(body, key) || byID(t, body, "who") != "Price watcher" || !strings.Contains(byID(t, body, "start"), "Buy a session") || strings.Contains(body, "data-chart") {
		t.Errorf("the first page of a new account is\n%s", body)
	}
	c, err := w.Accounts.AuthenticateKey(context.Background(), key, nil)
	apptest.OK(t, err)
	info, err := w.Accounts.Info(context.Background(), c.AgentID)
	apptest.OK(t, err)
	if info.Agent.ContactEmail != "ops@example.com" || info.Agent.Origin.Addr.String() != "192.0.2.1" {
		t.Errorf("the account is %+v", info.Agent)
	}
	w.Buy(c.AgentID, apptest.Local)
	if body = w.get("/console/"); strings.Contains(body, `id="start"`) || !strings.Contains(body, "data-chart") {
		t.Errorf("after the first session the page is\n%s", body)
	}
	for path, help := range map[string]string{"/console/": "quickstart", "/console/sessions": "sessions", "/console/sessions/new": "sessions",
		"/console/money": "money", "/console/access": "webhooks"} {
		if !strings.Contains(w.get(path), `id="help" href="/docs/`+help+`.md"`) {
			t.Errorf("%s has no link to its help", path)
		}
	}
	w.cookie = nil
	code, body = w.send("POST", "/console/register", url.Values{"name": {"x"}})
	if code != http.StatusBadRequest || w.cookie != nil || !strings.Contains(byID(t, body, "problem"), "name must have 2 to 100 characters") {
		t.Errorf("a name of one letter: %d\n%s", code, body)
	}
}

// The console counts against the limits of the API: what one has taken the other has not.
func TestRegistrationsAreLimited(t *testing.T) {
	o := options{limits: throttle.Config{RegistrationsPerMinute: 2, WrongCodesPerMinute: 1}}
	w := open(t, o)
	form := url.Values{"name": {"Price watcher"}}
	if code, _ := w.send("POST", "/console/register", form); code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	w.limits.TakeRegistration(netip.MustParseAddr("192.0.2.1"))
	before := w.Dump()
	if code, body := w.send("POST", "/console/register", form); code != http.StatusTooManyRequests || w.headers.Get("Retry-After") == "" ||
		!strings.Contains(byID(t, body, "problem"), "too many registrations") && !strings.Contains(byID(t, body, "problem"), "Too many registrations") || w.Dump() != before {
		t.Errorf("the third: %d\n%s", code, body)
	}
	for _, want := range []int{http.StatusBadRequest, http.StatusTooManyRequests} {
		w.Clock.Advance(time.Minute / 2)
		code, _ := w.send("POST", "/console/register", url.Values{"name": {"Price watcher"}, "referral_code": {"wrong"}})
		if code != want {
			t.Errorf("a wrong code: %d, want %d", code, want)
		}
	}
}

func TestWhereRegistrationIsNotOpen(t *testing.T) {
	for way, want := range map[account.Registration]string{account.ClosedRegistration: "REGISTRATION_CLOSED", account.ReferralRegistration: "referral"} {
		w := open(t, options{Options: apptest.Options{Accounts: func(c *accounts.Config) { c.Registration = way }}})
		closed := way == account.ClosedRegistration
		if got := strings.Contains(w.get("/console/sign-in"), `id="register"`); got == closed {
			t.Errorf("%s: the sign-in offers an account: %v", way, got)
		}
		if got := strings.Contains(w.get("/console/register"), `id="open-account"`); got == closed {
			t.Errorf("%s: the page has a form: %v", way, got)
		}
		code, body := w.send("POST", "/console/register", url.Values{"name": {"Price watcher"}})
		if code < 400 || !strings.Contains(byID(t, body, "problem"), want) || w.cookie != nil {
			t.Errorf("%s: %d\n%s", way, code, body)
		}
	}
}

// newKey issues a further key of the account that is signed in.
func (w *world) newKey(name string, scopes ...account.Scope) (key string) {
	w.T.Helper()
	form := url.Values{"name": {name}}
	for _, s := range scopes {
		form.Add("permission", string(s))
	}
	code, body := w.send("POST", "/console/access/keys", form)
	if code != http.StatusOK {
		w.T.Fatalf("a key for %v: %d\n%s", scopes, code, body)
	}
	return byID(w.T, body, "shown-once")
}

var revokeLink = regexp.MustCompile(`/console/access/keys/key_[a-z0-9]+/revoke`)

// revokePath returns where the page of the newest further key is that asks whether to revoke it.
func (w *world) revokePath() string {
	w.T.Helper()
	return revokeLink.FindString(w.get("/console/access"))
}

func (w *world) keyPath() string { return strings.TrimSuffix(w.revokePath(), "/revoke") }

func TestKeysAreManaged(t *testing.T) {
	w := open(t, options{})
	r, ctx := w.signIn("5"), context.Background()
	for form, want := range map[string]string{"name=ci": "permissions", "name=x&permission=sessions:read": "name",
		"name=ci&permission=all": "permissions", "name=ci&permission=sessions:read&days=x": "days"} {
		values, err := url.ParseQuery(form)
		apptest.OK(t, err)
		if code, body := w.send("POST", "/console/access/keys", values); code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), want) {
			t.Errorf("%s: %d\n%s", form, code, body)
		}
	}
	code, body := w.send("POST", "/console/access/keys", url.Values{"name": {"ci"}, "days": {"30"},
		"permission": {"account:read", "account:write", "sessions:read"}})
	if code != http.StatusOK {
		t.Fatalf("a key: %d\n%s", code, body)
	}
	key := byID(t, body, "shown-once")
	c, err := w.Accounts.AuthenticateKey(ctx, key, nil)
	if err != nil || c.AgentID != r.Agent.ID || len(c.Scopes) != 3 {
		t.Errorf("the key is that of %+v, %v", c, err)
	}
	list := w.get("/console/access")
	if strings.Contains(list, key) || !strings.Contains(byID(t, list, "keys"), "ci …"+account.Hint(key)+" account:read, account:write, sessions:read until ") {
		t.Errorf("the keys are %s", byID(t, list, "keys"))
	}
	first := w.cookie
	w.cookie = nil
	w.enter(key)
	if body := w.get("/console/access/keys/new"); strings.Contains(body, `value="billing:write"`) || !strings.Contains(body, `value="sessions:read"`) {
		t.Errorf("a key offers what it has not:\n%s", body)
	}
	if code, _ := w.send("POST", "/console/access/keys", url.Values{"name": {"more"}, "permission": {"billing:write"}}); code != http.StatusForbidden {
		t.Errorf("a key that may more than its maker: %d", code)
	}
	w.cookie = first
	path := w.revokePath()
	if body := w.get(path); !strings.Contains(body, "…"+account.Hint(key)) {
		t.Errorf("the question does not name the key:\n%s", body)
	}
	if to := w.post(path, url.Values{}); to != "/console/access?done=revoked" {
		t.Errorf("revoking leads to %s", to)
	}
	if _, err := w.Accounts.AuthenticateKey(ctx, key, nil); err == nil {
		t.Error("a revoked key is taken")
	}
	id := regexp.MustCompile(`key_1[a-z0-9]+`).FindString(w.get("/console/access"))
	if code, _ := w.send("POST", "/console/access/keys/"+id+"/revoke", url.Values{}); code != http.StatusBadRequest {
		t.Errorf("revoking the first key: %d", code)
	}
}

func TestTheAccountIsEdited(t *testing.T) {
	w := open(t, options{})
	r, ctx := w.signIn(""), context.Background()
	w.post("/console/access/account", url.Values{"name": {" Watcher "}, "contact_email": {"ops@example.com"}, "description": {"of prices"}})
	code, body := w.send("POST", "/console/access/webhook", url.Values{"webhook_url": {apptest.WebhookURL}})
	if secret := byID(t, body, "shown-once"); code != http.StatusOK || secret != w.Secrets.WebhookSecret(r.Agent.ID, 1) {
		t.Errorf("the first address answers %d with %s", code, secret)
	}
	if code, body := w.send("POST", "/console/access/webhook/rotate-secret", url.Values{}); code != http.StatusOK ||
		byID(t, body, "shown-once") != w.Secrets.WebhookSecret(r.Agent.ID, 2) {
		t.Errorf("rotating the secret: %d\n%s", code, body)
	}
	info, err := w.Accounts.Info(ctx, r.Agent.ID)
	apptest.OK(t, err)
	if a := info.Agent; a.Name != "Watcher" || a.ContactEmail != "ops@example.com" || a.Description != "of prices" || a.WebhookURL != apptest.WebhookURL {
		t.Errorf("the account is %+v", a)
	}
	before := w.Dump()
	for path, form := range map[string]url.Values{"/console/access/account": {"name": {"x"}}, "/console/access/webhook": {"webhook_url": {"ftp://x"}}} {
		if code, body := w.send("POST", path, form); code != http.StatusBadRequest || !strings.Contains(body, `id="problem"`) || w.Dump() != before {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	w.post("/console/access/webhook", url.Values{"webhook_url": {""}})
	if body := w.get("/console/access"); !strings.Contains(byID(t, body, "webhook"), "events go nowhere") {
		t.Errorf("the webhook is %s", byID(t, body, "webhook"))
	}
}
