package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
	"agentproxy/test/fake/upstreamproxy"
)

// rows runs a command with --json and reads the list that it prints.
func (s *service) rows(args ...string) (list []map[string]any) {
	s.t.Helper()
	out, err := s.done(append([]string{"--json"}, args...)...)
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return list
}

// An order whose answer was lost, at a seller whose list does not answer, is for
// the operator, while the service runs.
func TestTheOperatorDecidesUnknownOrders(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "pcu1410379", "pcsecret1410379")
	done, lost := proxycheap.New(t), proxycheap.New(t)
	addrs, port := door(t, gate, "127.0.10.1")
	done.Deliver(addrs, port, 0)
	done.Answers(proxycheap.Shape{Polls: 0})
	for s, fault := range map[*proxycheap.Seller]seller.Fault{done: seller.DropAnswer, lost: seller.DropRequest} {
		s.Next("/execute", fault)
		// The list before the order succeeds, and every later one fails.
		s.Next("GET /proxies", append([]seller.Fault{seller.None}, slices.Repeat([]seller.Fault{seller.Failed}, 1000)...)...)
	}
	one, two := cheap(done), cheap(lost)
	_, second, _ := strings.Cut(two, "providers:\n")
	provider, product, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(second, "name: cheap", "name: lost"), "provider: cheap", "provider: lost"), "products:\n")
	m := open(t, strings.Replace(one, "products:\n", provider+"products:\n", 1)+strings.Replace(product, "sta_cheap", "sta_lost", 1), cheapEnv...)
	key, _ := m.register("upstream")
	var balance struct{ Balance json.Number }
	m.must(200, "GET", "/billing/balance", key, "").into(t, &balance)
	var made, not apiclient.Session
	m.must(202, "POST", "/sessions", key, static("sta_cheap", 1)).into(t, &made)
	m.must(202, "POST", "/sessions", key, static("sta_lost", 1)).into(t, &not)
	orders := map[any]string{}
	within(t, soon, "two unknown orders", func() bool {
		for _, o := range m.rows("orders", "list", "--status", "unknown") {
			orders[o["session_id"]] = fmt.Sprint(o["order_id"])
		}
		return len(orders) == 2
	})
	if _, metrics := m.page("/metrics"); !strings.Contains(metrics, "agentproxy_upstream_orders_open") {
		t.Error("no gauge of open orders")
	}
	for _, args := range [][]string{
		{"orders", "adopt", orders[made.SessionID], "--ref", "0198ffff-312c-7072-90e1-aaaaaaaaaaaa"}, // not there
		{"orders", "adopt", "ord_unknown", "--ref", "x"},
		{"orders", "release", "ord_unknown"},
	} {
		if out, err := m.run(args...); exit(err) != 1 || strings.Contains(out, "goroutine") {
			t.Errorf("%v: exit %d\n%s", args, exit(err), out)
		}
	}
	if got := m.object("orders", "adopt", orders[made.SessionID], "--ref", done.Orders()[0].ID); got["status"] != "confirmed" {
		t.Errorf("adopt: %v", got)
	}
	if out, err := m.run("--json", "orders", "release", orders[not.SessionID]); err != nil || !strings.Contains(out, `"status": "refused"`) {
		t.Errorf("release: %v\n%s", err, out)
	}
	within(t, soon, "the adopted order is delivered", func() bool { return m.session(key, made.SessionID).Status == "active" })
	m.exitOf(m.session(key, made.SessionID).Proxy.FullURL)
	if d := m.session(key, not.SessionID); d.Status != "failed" || d.Cost.Held != "0" {
		t.Errorf("the released session is %+v", d)
	}
	var after struct{ Balance json.Number }
	m.must(200, "GET", "/billing/balance", key, "").into(t, &after)
	if spent := rat(t, balance.Balance); spent.Sub(spent, rat(t, after.Balance)).RatString() != "9" {
		t.Errorf("the balance was %s and is %s, for one address of 9 USD", balance.Balance, after.Balance)
	}
	if out, err := m.run("orders", "release", orders[made.SessionID]); exit(err) != 1 || !strings.Contains(out, "confirmed") {
		t.Errorf("a decided order is released: %v\n%s", err, out)
	}
	if done.Sales() != 1 || lost.Sales() != 0 || done.Calls("/execute") != 1 || lost.Calls("/execute") != 1 {
		t.Errorf("sold %d and %d times, asked %d and %d times", done.Sales(), lost.Sales(), done.Calls("/execute"), lost.Calls("/execute"))
	}
	m.verify()
}

func TestTheOperatorLooksAtSellers(t *testing.T) {
	t.Parallel()
	cheapest := proxycheap.New(t)
	keys, _, provider := ssx(t)
	m := open(t, strings.Replace(cheap(cheapest), "products:\n", provider+"products:\n"+traffic("sx", "dyn_sx", ""), 1), append(cheapEnv, ssxKey)...)
	names := func(list []map[string]any) (all []string) {
		for _, r := range list {
			all = append(all, fmt.Sprint(r["name"]))
		}
		slices.Sort(all)
		return all
	}
	if list := m.rows("providers", "list"); !slices.Equal(names(list), []string{"cheap", "sx"}) {
		t.Errorf("providers list: %v", list)
	}
	for _, r := range m.rows("providers", "check") {
		if r["reachable"] != "yes" || r["offers"] == 0.0 || r["name"] == "cheap" && r["balance"] != "10000" {
			t.Errorf("providers check: %v", r)
		}
	}
	catalogue := m.rows("providers", "catalogue", "sx")
	if i := slices.IndexFunc(catalogue, func(r map[string]any) bool { return r["country"] == "US" }); i < 0 || catalogue[i]["stock"] != "yes" {
		t.Errorf("providers catalogue: %v", catalogue)
	}
	keys.Next("", slices.Repeat([]seller.Fault{seller.Expired}, 100)...)
	cheapest.Next("", slices.Repeat([]seller.Fault{seller.Expired}, 100)...)
	out, err := m.run("providers", "check")
	if exit(err) != 1 || !strings.Contains(out, "auth") || !strings.Contains(out, "failed") {
		t.Errorf("providers check of sellers that know no key: exit %d\n%s", exit(err), out)
	}
	if out, err := m.run("config", "check"); err != nil {
		t.Errorf("config check: %v\n%s", err, out)
	}
	for _, secret := range []string{proxycheap.Key, proxycheap.Secret, ssxKey[len("SX_KEY="):]} {
		if strings.Contains(out, secret) {
			t.Errorf("a secret is printed:\n%s", out)
		}
	}
	m.env = slices.DeleteFunc(slices.Clone(m.env), func(v string) bool { return v == ssxKey })
	if out, err := m.run("config", "check"); exit(err) != 1 || !strings.Contains(out, "providers[1].secrets.api_key") {
		t.Errorf("config check without a secret: exit %d\n%s", exit(err), out)
	}
}

// What the seller has and no order is known for is listed by the command, and what was
// given up and is back is cancelled.
func TestTheOperatorComparesASellerWithTheOrders(t *testing.T) {
	t.Parallel()
	seller, _, provider := ssx(t)
	m := open(t, "embedded: false\nproviders:\n"+provider+"products:\n"+traffic("sx", "dyn_sx", ""), ssxKey)
	key, _ := m.register("upstream")
	kept := m.buy(key, dynamic("dyn_sx", "1"))
	r, err := http.NewRequestWithContext(t.Context(), "POST", seller.Base()+"/reseller/pool-keys", strings.NewReader(`{"label":"by hand","trafficCapGB":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", proxyssx.APIKey)
	r.Header.Set("X-Request-Id", "by hand")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != 201 {
		t.Fatalf("a key by hand: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	rows := m.rows("orders", "reconcile", "sx")
	if len(rows) != 2 || rows[0]["what"] != "total" || rows[0]["quantity"] != 2.0 || rows[1]["what"] != "orphan" || rows[1]["ref"] != seller.Keys()[1].ID {
		t.Errorf("compared: %v", rows)
	}
	if d := m.session(key, kept.SessionID); d.Status != "active" || len(seller.Keys()) != 2 {
		t.Errorf("the session is %s, the seller has %d keys", d.Status, len(seller.Keys()))
	}
	if _, metrics := m.page("/metrics"); !strings.Contains(metrics, `agentproxy_upstream_orphans{provider="sx"} 1`) {
		t.Error("no gauge of orphans")
	}
	for _, args := range [][]string{{"orders", "reconcile", "unknown"}, {"orders", "reconcile", "embedded"}} {
		if out, err := m.run(args...); exit(err) != 1 || strings.Contains(out, "goroutine") {
			t.Errorf("%v: exit %d\n%s", args, exit(err), out)
		}
	}
	m.keepsSecret(key, []string{kept.SessionID}, proxyssx.APIKey, "pak_")
}
