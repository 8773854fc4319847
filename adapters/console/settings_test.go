package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/policy"
	"agentproxy/test/apptest"
)

func TestTheSettingsOfASession(t *testing.T) {
	w := open(t, options{})
	id, ctx := w.signIn("60").Agent.ID, context.Background()
	s, static := w.Buy(id, apptest.Local), w.Buy(id, apptest.Static)
	page := "/console/sessions/" + s.ID
	for path, form := range map[string]string{
		"/labels":      "labels=team:prices%0D%0Aenv: prod%0D%0A",
		"/allowed-ips": "allowed_ips=192.0.2.7%0D%0A203.0.113.0/24",
		"/auto-top-up": "add_gb=0.5&below_percent=20&max_per_day=3&max_price_per_gb=1.5",
		"/policy":      "mode=enforce&deny=.ads.test%0D%0A&ports=443%0D%0A80",
	} {
		values, err := url.ParseQuery(form)
		apptest.OK(t, err)
		if to := w.post(page+path, values); to != page+"?done=settings" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	got := w.Read(id, s.ID)
	auto := got.TopUps.Auto
	if got.Labels["team"] != "prices" || got.Labels["env"] != "prod" || len(got.AllowedIPs) != 2 || auto.Bytes != 500_000_000 ||
		auto.BelowPercent != 20 || auto.MaxPerDay != 3 || auto.MaxPrice != apptest.Dollars("1.5") {
		t.Errorf("the session is %+v", got.Session)
	}
	own, err := w.Policies.Get(ctx, id, s.ID)
	if err != nil || own.Mode != policy.Enforce || len(own.Deny) != 1 || len(own.Ports) != 2 || len(own.Allow) != 0 {
		t.Errorf("the policy is %+v, %v", own, err)
	}
	body := w.get(page + "/settings")
	for _, want := range []string{"env:prod\nteam:prices", "192.0.2.7/32\n203.0.113.0/24", ">.ads.test<", `value="0.5"`, `value="1.5"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the form does not have %q:\n%s", want, body)
		}
	}
	w.post(page+"/auto-top-up", url.Values{"below_percent": {"20"}, "max_per_day": {"3"}})
	if got = w.Read(id, s.ID); got.TopUps.Auto.Bytes != 0 {
		t.Errorf("an empty form leaves %+v", got.TopUps.Auto)
	}
	before := w.Dump()
	for _, c := range []struct{ path, form, want string }{
		{"/labels", "labels=team", "labels"}, {"/labels", "labels=TEAM:x", "labels"},
		{"/allowed-ips", "allowed_ips=example.com", "allowed"}, {"/auto-top-up", "add_gb=0,5&below_percent=20&max_per_day=3", "write 0.5"},
		{"/auto-top-up", "add_gb=x&below_percent=20&max_per_day=3", "add gb"}, {"/policy", "mode=enforce&deny=*.ads.test", "deny"},
		{"/policy", "mode=half", "mode"},
	} {
		values, err := url.ParseQuery(c.form)
		apptest.OK(t, err)
		code, body := w.send("POST", page+c.path, values)
		if code != http.StatusBadRequest || !strings.Contains(byID(t, body, "problem"), c.want) || w.Dump() != before {
			t.Errorf("%s with %s: %d %s", c.path, c.form, code, byID(t, body, "problem"))
		}
	}
	if body := w.get("/console/sessions/" + static.ID + "/settings"); strings.Contains(body, "auto-top-up") {
		t.Error("a static session offers to buy traffic")
	}
	w.post(page+"/end", url.Values{})
	if body := w.get(page + "/settings"); strings.Contains(body, "allowed_ips") || !strings.Contains(body, "/labels") {
		t.Errorf("of an ended session can be changed\n%s", body)
	}
	w.cookie = nil
	w.signIn("")
	for _, path := range []string{"/settings", "/traffic"} {
		if code, _ := w.send("GET", page+path, nil); code != http.StatusNotFound {
			t.Errorf("%s of another agent's session: %d", path, code)
		}
	}
	for _, path := range []string{"/labels", "/allowed-ips", "/auto-top-up", "/policy", "/traffic"} {
		if code, _ := w.send("POST", page+path, url.Values{"key": {"form_1"}, "mode": {"off"}}); code != http.StatusNotFound {
			t.Errorf("%s of another agent's session: %d", path, code)
		}
	}
}

func TestTrafficIsAdded(t *testing.T) {
	w := open(t, options{Options: apptest.Options{TrialBalance: -1}})
	id := w.signIn("1").Agent.ID
	s := w.Buy(id, apptest.Local)
	page := "/console/sessions/" + s.ID
	if body := w.get(page); !strings.Contains(body, page+"/traffic") {
		t.Errorf("the session offers no traffic:\n%s", body)
	}
	body := w.get(page + "/traffic?traffic_gb=0.5")
	if byID(t, body, "quote-cost") != "$0.20" {
		t.Errorf("half a GB is\n%s", body)
	}
	form := hidden(t, body, page+"/traffic")
	for range 2 {
		if to := w.post(page+"/traffic", form); to != page+"?done=added" {
			t.Errorf("adding leads to %s", to)
		}
	}
	if got := w.Read(id, s.ID).Bytes; got != s.Bytes+500_000_000 || w.Balance(id) != domain.Money(400_000) {
		t.Errorf("two clicks make %d bytes, and leave %s", got, w.Balance(id))
	}
	for gb, want := range map[string]string{"0,5": "write 0.5", "1.000,5": "1000.50", "x": "traffic gb", "9": "INSUFFICIENT_BALANCE"} {
		code, body := w.send("GET", page+"/traffic?traffic_gb="+url.QueryEscape(gb), nil)
		if code < 400 || !strings.Contains(byID(t, body, "problem"), want) {
			t.Errorf("%s GB: %d %s", gb, code, byID(t, body, "problem"))
		}
	}
}

func TestACommaIsNotADecimalPoint(t *testing.T) {
	w := open(t, options{})
	w.signIn("5")
	for _, c := range []struct{ method, path, form string }{
		{"GET", "/console/sessions/quote?product_no=" + apptest.Local + "&traffic_gb=0,5", ""},
		{"POST", "/console/money/recharges", "key=form_1&amount=0,5"},
		{"POST", "/console/money/budget", "daily_limit=0,5"},
	} {
		values, err := url.ParseQuery(c.form)
		apptest.OK(t, err)
		code, body := w.send(c.method, c.path, values)
		if got := byID(t, body, "problem"); code != http.StatusBadRequest || !strings.Contains(got, "write 0.5") {
			t.Errorf("%s: %d %s", c.path, code, got)
		}
	}
}
