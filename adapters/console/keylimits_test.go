package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

func TestKeysHaveBudgets(t *testing.T) {
	t.Parallel()
	w := open(t, options{})
	r := w.signIn("5")
	id := r.Agent.ID
	limits := url.Values{"total": {"2.5"}, "daily": {"1"}, "per_purchase": {"0.75"}, "max_sessions": {"3"}, "own": {"yes"},
		"product": {apptest.Local}}
	made := url.Values{"name": {"child"}, "permission": {"sessions:read", "sessions:write"}}
	for k, v := range limits {
		made[k] = v
	}
	for typed, want := range map[string]string{"total=x": "budget total", "total=0": "budget total", "daily=3": "budget daily",
		"per_purchase=-1": "budget per purchase", "max_sessions=0": "max sessions", "max_sessions=10001": "max sessions", "product=none": "products",
		"total=1,5": "1.5"} {
		bad := url.Values{"name": made["name"], "permission": made["permission"], "total": {"2.5"}}
		more, err := url.ParseQuery(typed)
		apptest.OK(t, err)
		for k := range more {
			bad[k] = more[k]
		}
		code, body := w.send("POST", "/console/access/keys", bad)
		if code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), want) {
			t.Errorf("%s: %d\n%s", typed, code, byID(t, body, "problem"))
		}
		checkPage(t, typed, body)
	}
	code, body := w.send("POST", "/console/access/keys", made)
	apptest.Equal(t, "a key with limits", code, http.StatusOK)
	text := byID(t, body, "shown-once")
	list, err := w.Accounts.Keys.Views(t.Context(), id)
	apptest.OK(t, err)
	k := list[0]
	budget := k.Limits.Budget
	if budget.Total.String() != "2.5" || budget.Daily.String() != "1" || budget.PerPurchase.String() != "0.75" || k.Limits.MaxSessions != 3 ||
		!k.Limits.Own || len(k.Limits.Products) != 1 {
		t.Errorf("its limits are %+v", k.Limits)
	}

	caller, err := w.Accounts.AuthenticateKey(t.Context(), text, nil)
	apptest.OK(t, err)
	bought, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: id, By: caller.Spender(), Form: apptest.Form(apptest.Local)})
	apptest.OK(t, err)
	w.UseBytes(bought.View.ID, "one", 500_000_000)
	w.Buy(id, apptest.Local)
	path := "/console/access/keys/" + k.ID
	body = w.get("/console/access/keys")
	if got := byID(t, body, k.ID); !strings.HasPrefix(got, "child …"+account.Hint(text)+" restricted") || !strings.Contains(got, "1 of 3") {
		t.Errorf("the key is listed as %q", got)
	}
	v := w.view(id, k.ID)
	if v.Spent <= 0 || v.Held <= 0 || !strings.Contains(byID(t, body, k.ID), ui.USD(v.Spent)) ||
		!strings.Contains(body, `&#34;labels&#34;:[&#34;child&#34;,`) {
		t.Errorf("spent %s and held %s are not shown:\n%s", v.Spent, v.Held, body)
	}
	all, err := w.Wallet.Balance(t.Context(), id)
	apptest.OK(t, err)
	if got := byID(t, body, "key-others"); !strings.Contains(got, ui.USD(all.Held-v.Held)) {
		t.Errorf("what other keys hold is %q of %s", got, all.Held)
	}
	page := w.get(path)
	apptest.Equal(t, "left", byID(t, page, "key-left"), ui.USD(v.Left))
	for _, want := range []string{`name="total" inputmode="decimal" autocomplete="off" value="2.5"`, `value="` + apptest.Local + `" checked`,
		`id="own" name="own" value="yes" checked`, `max="2.5" value="` + (v.Spent + v.Held).String() + `"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s:\n%s", want, page)
		}
	}
	checkPage(t, path, page)
	if list := w.get("/console/sessions?key=" + k.ID); !strings.Contains(list, bought.View.ID) || strings.Count(list, `<tr id="session-`) != 1 {
		t.Errorf("the sessions of the key are\n%s", list)
	}
	if got := byID(t, w.get("/console/sessions/"+bought.View.ID), "bought-by"); got != "child" {
		t.Errorf("the session was bought by %q", got)
	}

	limits.Set("daily", "2.6")
	if code, body := w.send("POST", path, limits); code != http.StatusBadRequest || !strings.Contains(body, `value="2.6"`) {
		t.Errorf("more a day than ever: %d", code)
	}
	apptest.Equal(t, "changed", w.post(path, url.Values{"total": {"2"}}), path+"?done=key")
	if l := w.view(id, k.ID).Limits; l.Own || l.Products != nil || l.MaxSessions != 0 || l.Budget.Daily != nil || l.Budget.Total.String() != "2" {
		t.Errorf("the limits after the change are %+v", l)
	}
	first := "/console/access/keys/" + w.view(id, "").ID
	if code, body := w.send("POST", first, url.Values{"total": {"2"}}); code != http.StatusConflict || !strings.Contains(body, "LAST_KEY") {
		t.Errorf("restricting the last free key: %d", code)
	}
	for _, none := range []string{"key_none", strings.Repeat("k", 65)} {
		if code, _ := w.send("GET", "/console/access/keys/"+none, nil); code != http.StatusNotFound {
			t.Errorf("the key %s answers %d", none, code)
		}
	}
	apptest.Equal(t, "revoked", w.post(path+"/revoke", url.Values{"sessions": {"end"}}), "/console/access?done=revoked")
	s, err := w.Sessions.Read(t.Context(), id, bought.View.ID)
	apptest.OK(t, err)
	if !s.Status.Over() {
		t.Error("a session goes on after its key and its sessions ended")
	}
}

// view returns a key of an agent; "" is the first one.
func (w *world) view(agent, id string) accounts.KeyView {
	w.T.Helper()
	list, err := w.Accounts.Keys.Views(w.T.Context(), agent)
	apptest.OK(w.T, err)
	for _, k := range list {
		if k.ID == id || id == "" && k.First {
			return k
		}
	}
	w.T.Fatalf("there is no key %q", id)
	return accounts.KeyView{}
}
