package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/exitfacts"
	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/ports"
	"agentproxy/test/fake"
	"agentproxy/test/qrscan"
)

var updateGolden = flag.Bool("update", false, "rewrite testdata")

// entryIDs are the ids of entries. On PostgreSQL a purchase that takes addresses runs twice, alone after
// in its batch, and the second run makes new ones.
var entryIDs = regexp.MustCompile(`txn_[a-z]+`)

// golden compares an answer, with its status and our own headers, with a file.
func (a *answer) golden(name string) *answer {
	a.t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP %d\n", a.status)
	for _, h := range []string{"Allow", "Content-Type", "Idempotency-Replayed", "Location", "RateLimit", "RateLimit-Policy", "Retry-After",
		"Www-Authenticate", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-ID"} {
		if v := a.header.Get(h); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", h, v)
		}
	}
	b.WriteByte('\n')
	switch kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); kind {
	case "image/png":
		fmt.Fprint(&b, qrscan.Read(a.t, a.body))
	case "text/plain":
		b.Write(a.body)
	default:
		if err := json.Indent(&b, bytes.TrimSpace(a.body), "", "  "); err != nil {
			a.t.Fatal(err)
		}
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", name+".golden")
	if *updateGolden {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			a.t.Fatal(err)
		}
		return a
	}
	want, err := os.ReadFile(file)
	if err != nil {
		a.t.Fatal(err)
	}
	got := b.Bytes()
	if os.Getenv("TEST_STORE") == "postgres" {
		got, want = entryIDs.ReplaceAll(got, nil), entryIDs.ReplaceAll(want, nil)
	}
	if !bytes.Equal(want, got) {
		a.t.Errorf("%s %s is not %s (run make generate if it should be):\n%s", a.method, a.path, file, b.Bytes())
	}
	return a
}

// TestGolden answers every operation once, byte for byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 600})
	w.do("GET", "/v1/health", "").want(200).golden("get-health")
	w.do("GET", "/v1/ip", "").want(200).golden("get-ip")
	w.do("POST", "/v1/auth/register", `{"name":"Alias"}`).want(201).golden("register-alias")
	r := w.do("POST", "/v1/account/register", `{"name":"Price watcher","contact_email":"ops@example.com",
		"webhook_url":"https://example.com/hook","description":"watches prices"}`).want(201).golden("register")
	a := agent{r.str("data.agent_id"), r.str("data.api_key"), r.str("data.api_secret")}
	token := w.do("POST", "/v1/auth/token", fmt.Sprintf(`{"api_key":%q,"api_secret":%q}`, a.Key, a.Secret)).want(200).golden("issue-token")
	w.do("POST", "/v1/auth/refresh", "", bearer(token.str("data.access_token"))).want(200).golden("refresh-token")
	w.do("GET", "/v1/account/info", "", a.as).want(200).golden("get-account")
	w.do("PUT", "/v1/account/info", `{"name":"Price watcher 2","contact_email":null}`, a.as).want(200).golden("update-account")
	w.do("POST", "/v1/account/rotate-secret", "", a.as).want(200).golden("rotate-secret")

	w.do("GET", "/v1/products?page_size=1", "", a.as).want(200).golden("list-products")
	w.do("GET", "/v1/public/products?type=static", "").want(200).golden("list-public-products")
	w.do("GET", "/v1/products/regions", "", a.as).want(200).golden("list-regions")
	w.do("POST", "/v1/products/recommend", `{"use_case":"web_scraping","target_region":"us","budget":5,"session_count":2}`, a.as).want(200).golden("recommend-products")

	goldenSessions(w, a)
	goldenMoney(w, a)
	goldenRecharges(w, a)
	w.do("GET", "/v1/account/limits", "", a.as).want(200).golden("get-limits")
	goldenWebhooks(t)
	goldenCallback(t)
	goldenReveal(t)
	goldenWorkers(t)
	goldenTopUp(t)
	everyOperation(t, w)
}

func goldenTopUp(t *testing.T) {
	w := newWorld(t, options{})
	a := w.register("Topper")
	id := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":0.1},
		"auto_top_up":{"below_percent":10,"add_gb":0.1,"max_per_day":3}}`, a.as).want(201).str("data.session_id")
	w.do("POST", "/v1/sessions/"+id+"/traffic?dry_run=true", `{"traffic_gb":0.5}`, a.as).want(200).golden("add-traffic-dry")
	w.do("POST", "/v1/sessions/"+id+"/traffic", `{"traffic_gb":0.5,"max_cost":1}`, a.as).want(200).golden("add-traffic")
	w.do("GET", "/v1/billing/statements/"+w.clock.Now().Format("2006-01"), "", a.as).want(200).golden("get-statement")
}

func goldenReveal(t *testing.T) {
	w := newWorld(t, options{})
	a := w.register("Revealer")
	id, _ := w.buyNow(a)
	w.do("GET", "/v1/reveal/"+w.link(a, id)+"?as=env", "").want(200).golden("reveal-credentials")
}

func goldenWebhooks(t *testing.T) {
	w := newWorld(t, options{})
	a := w.register("Listener")
	w.do("GET", "/v1/account/webhook", "", a.as).want(200).golden("get-webhook-none")
	w.do("POST", "/v1/account/webhook/test", "", a.as).refused(400, "INVALID_REQUEST").golden("test-webhook-none")
	w.do("PUT", "/v1/account/info", `{"webhook_url":"https://example.com/hook"}`, a.as).want(200).golden("update-account-webhook")
	w.do("POST", "/v1/account/webhook/test", "", a.as).want(200).golden("test-webhook")
	w.work()
	w.sender.status = 410
	w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`, a.as).want(201)
	w.do("POST", "/v1/account/webhook/rotate-secret", "", a.as).want(200).golden("rotate-webhook-secret")
	w.do("GET", "/v1/account/webhook", "", a.as).want(200).golden("get-webhook")
	w.work()
	w.do("GET", "/v1/account/webhook", "", a.as).want(200).golden("get-webhook-disabled")
	list := w.do("GET", "/v1/account/webhook/deliveries", "", a.as).want(200).golden("list-webhook-deliveries")
	again := "/v1/account/webhook/deliveries/" + list.str("data.items.0.delivery_id") + "/redeliver"
	w.do("POST", again, "", a.as).refused(400, "INVALID_REQUEST").golden("redeliver-webhook-disabled")
	w.do("PUT", "/v1/account/info", `{"webhook_url":"https://example.com/hook"}`, a.as).want(200)
	w.do("POST", again, "", a.as).want(200).golden("redeliver-webhook")
	w.do("GET", "/v1/account/webhook/deliveries?status=failed", "", a.as).want(200).golden("list-webhook-deliveries-failed")
	w.do("GET", "/v1/account/webhook/deliveries?status=lost", "", a.as).refused(400, "INVALID_REQUEST")
	w.do("GET", "/v1/account/webhook/deliveries?page=0", "", a.as).refused(400, "INVALID_REQUEST")
}

func goldenCallback(t *testing.T) {
	w := newWorld(t, options{more: []ports.Provider{&caller{Provider: fake.NewProvider("calls")}}})
	w.do("POST", "/v1/providers/calls/callback", `{"event":"x"}`, header("X-Signature", "good")).want(200).golden("provider-callback")
	w.do("POST", "/v1/providers/calls/callback", `{"event":"x"}`).refused(400, "INVALID_REQUEST").golden("provider-callback-forged")
}

func goldenSessions(w *world, a agent) {
	w.do("POST", "/v1/sessions?dry_run=true", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1.5}}`, a.as).want(200).golden("create-session-dry-run")
	key := header("Idempotency-Key", "one")
	dynamic := w.do(
		"POST",
		"/v1/sessions",
		`{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1.5,"country":"us",
		"rotation":{"mode":"timed","interval_seconds":60}}}`,
		a.as,
		key,
	).want(
		201,
	).golden(
		"create-session",
	).str(
		"data.session_id",
	)
	w.do(
		"POST",
		"/v1/sessions",
		`{"session_type":"static","product_no":"sta_sync","quantity":2,"duration":30,"country_code":"DE","city":"BER",
		"protocol":"socks5"}`,
		a.as,
	).want(
		201,
	).golden(
		"create-session-flat",
	)
	static := "sess_aaaaaaaaaaaaaaaaaaac"
	creating := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_async"}}`, a.as).
		want(202).golden("create-session-async").str("data.session_id")
	w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","provisioning_mode":"existing"}}`, a.as).want(200).golden("create-session-existing")
	w.clock.Advance(time.Minute)
	w.do("GET", "/v1/sessions/"+static, "", a.as).want(200).golden("get-session-static")
	w.do("GET", "/v1/sessions/"+creating, "", a.as).want(200).golden("get-session")
	w.do("GET", "/v1/sessions?type=static", "", a.as).want(200).golden("list-sessions")
	w.do("GET", "/v1/sessions/"+dynamic+"/usage", "", a.as).want(200).golden("get-session-usage")

	w.do(
		"POST",
		"/v1/sessions/"+dynamic+"/report-event",
		`{"event_type":"http_error","status_code":403,"latency_ms":812.4,"target_host":"shop.example"}`,
		a.as,
	).want(
		200,
	).golden(
		"report-event",
	)
	w.do(
		"POST",
		"/v1/telemetry/batch",
		`{"events":[{"session_id":"`+dynamic+`","event_type":"success","status_code":200,"latency_ms":40},
		{"session_id":"sess_unknown","event_type":"block"}]}`,
		a.as,
	).want(
		200,
	).golden(
		"report-batch",
	)
	w.do("GET", "/v1/sessions/"+dynamic+"/health", "", a.as).want(200).golden("get-session-health")
	w.do("GET", "/v1/sessions/"+dynamic+"/events", "", a.as).want(200).golden("list-session-events")
	w.do("POST", "/v1/sessions/"+dynamic+"/check", "", a.as).want(200).golden("check-session")
	w.do("POST", "/v1/sessions/"+dynamic+"/rotate", `{"reason":"http_403"}`, a.as).want(200).golden("rotate-session")
	w.do("POST", "/v1/sessions/"+static+"/renew?dry_run=true", "", a.as).want(200).golden("renew-session-dry-run")
	w.do("POST", "/v1/sessions/"+static+"/renew", `{"duration_days":30}`, a.as).want(200).golden("renew-session")
	address := "/v1/sessions/" + static + "/ips/" + w.do("GET", "/v1/sessions/"+static, "", a.as).want(200).str("data.ip_list.0.ip")
	w.facts.Replace([]exitfacts.Source{{File: func(netip.Addr) exit.Known { return exit.Known{Country: "LT"} }}})
	w.do("POST", "/v1/sessions/"+static+"/check", "", a.as).want(200)
	w.do("POST", address+"/replace?dry_run=true", `{"reason":"wrong_place"}`, a.as).want(200).golden("replace-ip-dry-run")
	w.do("POST", address+"/replace", `{"reason":"wrong_place"}`, a.as).want(200).golden("replace-ip")
	w.facts.Replace(nil)
	w.do("GET", "/v1/sessions/"+dynamic+"/clients", "", a.as).want(200).golden("list-session-clients")
	w.do("GET", "/v1/sessions/"+dynamic+"/hosts", "", a.as).want(200).golden("list-session-hosts")
	w.do("POST", "/v1/sessions/"+dynamic+"/rotate-password", "", a.as).want(200).golden("rotate-password")
	w.do("PATCH", "/v1/sessions/"+dynamic, `{"labels":{"team":"prices"}}`, a.as).want(200).golden("change-session")
	w.do("POST", "/v1/sessions/"+dynamic+"/terminate", "", a.as).want(200).golden("terminate-session")
	w.do("DELETE", "/v1/sessions/"+creating, "", a.as).want(200).golden("delete-session")
}

func goldenMoney(w *world, a agent) {
	w.do("GET", "/v1/billing/balance", "", a.as).want(200).golden("get-balance")
	w.do("GET", "/v1/billing/transactions?page_size=4", "", a.as).want(200).golden("list-transactions")
	w.do("GET", "/v1/billing/usage-report?period=week", "", a.as).want(200).golden("get-usage-report")
	w.do("PUT", "/v1/billing/budget", `{"daily_limit":5.5,"total_limit":100,"alert_thresholds":[90,50]}`, a.as).want(200).golden("set-budget")
	w.do("PUT", "/v1/billing/budget", `{"total_limit":null}`, a.as).want(200)
	w.do("GET", "/v1/billing/budget", "", a.as).want(200).golden("get-budget")
	w.do("GET", "/v1/stats/overview", "", a.as).want(200).golden("get-overview")
	w.do("GET", "/v1/stats/traffic?granularity=day&start_date=2026-05-14&end_date=2026-05-16", "", a.as).want(200).golden("get-traffic-stats")
	w.do("GET", "/v1/stats/cost?granularity=hour&start_date=2026-05-15T11:00:00Z&end_date=2026-05-15T13:00:00Z", "", a.as).want(200).golden("get-cost-stats")
}

func goldenRecharges(w *world, a agent) {
	w.clock.Advance(time.Minute)
	w.do("POST", "/v1/billing/recharge?dry_run=true", `{"amount":25.5}`, a.as).want(200).golden("create-recharge-dry-run")
	r := w.do("POST", "/v1/billing/recharge", `{"amount":25.5,"payment_method":"usdt"}`, a.as, header("Idempotency-Key", "one")).want(201).golden("create-recharge")
	order := "/v1/billing/recharge/" + r.str("data.order_id")
	w.do("GET", order+"/status", "", a.as).want(200).golden("get-recharge-status-pending")
	w.do("GET", order+"/qr", "", a.as).want(200).golden("get-recharge-qr")
	w.chain.Mine(41) // the order is older than its transfer
	w.chain.Send(fake.ChainAddress(1), r.str("data.wallet_address"), domain.MustMoney("25.5"))
	w.mine(3)
	w.do("GET", order+"/status", "", a.as).want(200).golden("get-recharge-status-confirming")
	w.mine(30)
	w.do("GET", order+"/status", "", a.as).want(200).golden("get-recharge-status")
	w.do("POST", "/v1/billing/recharge", `{"amount":1}`, a.as).want(201)
	w.do("GET", "/v1/billing/recharge", "", a.as).want(200).golden("list-recharges")
	w.do("GET", "/v1/billing/transactions?type=recharge", "", a.as).want(200).golden("list-transactions-recharge")
	w.do("POST", "/v1/billing/recharge", `{"amount":25.5,"payment_method":"usdt"}`, a.as, header("Idempotency-Key", "one")).want(201).golden("create-recharge-replayed")
	w.do("GET", order+"0/status", "", a.as).refused(404, "ORDER_NOT_FOUND").golden("get-recharge-status-unknown")
	w.do("POST", "/v1/billing/recharge", `{"amount":0.5,"payment_method":"card"}`, a.as).refused(400, "INVALID_REQUEST").golden("create-recharge-refused")
}

// everyOperation requires a golden answer of each documented operation.
func everyOperation(t *testing.T, w *world) {
	t.Helper()
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range w.doc.doc.Paths.Map() {
		for _, op := range item.Operations() {
			has := slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), op.OperationID) })
			if !has && op.OperationID != "get-openapi" {
				t.Errorf("%s has no golden answer", op.OperationID)
			}
		}
	}
}
