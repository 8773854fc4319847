package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

const oneIP = `{"type":"static","config":{"product_no":"sta_sync","quantity":1,"duration_days":30,"country":"US"}}`

// TestEveryErrorCode provokes each error code that this API has.
func TestEveryErrorCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{sessionLimit: 5})
	a := w.register("Errors")
	dynamic := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	static := w.do("POST", "/v1/sessions", oneIP, a.as).want(201).str("data.session_id")
	creating := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_async"}}`, a.as).want(202).str("data.session_id")
	ended := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	w.do("DELETE", "/v1/sessions/"+ended, "", a.as).want(200)
	balance := func() float64 { return w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance") }
	start := balance()

	w.do("POST", "/v1/account/register", `{"name":"ab","referral_code":"NOPE"}`).refused(400, "INVALID_REFERRAL_CODE")
	w.do("POST", "/v1/account/register", `{"name":"ab","referral_code":"`+strings.Repeat("x", 65)+`"}`).refused(400, "INVALID_REFERRAL_CODE")

	r := w.do("POST", "/v1/sessions", strings.Replace(oneGB, ":1}", ":900}", 1), a.as).refused(402, "INSUFFICIENT_BALANCE")
	if r.num("error.details.required") != 450 || r.num("error.details.available") != start ||
		r.str("error.details.currency") != "USD" ||
		r.at("error.retryable") != false {
		t.Errorf("%s", r.body)
	}
	w.do("POST", "/v1/sessions?dry_run=true", strings.Replace(oneGB, ":1}", ":900}", 1), a.as).refused(402, "INSUFFICIENT_BALANCE")
	w.do("PUT", "/v1/billing/budget", `{"paused":true}`, a.as).want(200)
	w.do("POST", "/v1/sessions", oneGB, a.as).refused(402, "BUDGET_EXCEEDED")
	w.do("POST", "/v1/sessions/"+static+"/renew", "", a.as).refused(402, "BUDGET_EXCEEDED")
	w.do("PUT", "/v1/billing/budget", `{"paused":false,"total_limit":0.1}`, a.as).want(200)
	w.do("POST", "/v1/sessions", oneGB, a.as).refused(402, "BUDGET_EXCEEDED")
	w.do("PUT", "/v1/billing/budget", `{"total_limit":null}`, a.as).want(200)

	for _, action := range []string{"rotate", "check"} {
		if r := w.do("POST", "/v1/sessions/"+creating+"/"+action, "", a.as).refused(409, "SESSION_NOT_READY"); r.at(
			"error.retryable",
		) != true {
			t.Errorf("%s", r.body)
		}
		w.do("POST", "/v1/sessions/"+ended+"/"+action, "", a.as).refused(410, "SESSION_EXPIRED")
	}
	w.do("POST", "/v1/sessions/"+ended+"/report-event", `{"event_type":"success"}`, a.as).refused(410, "SESSION_EXPIRED")
	w.do("POST", "/v1/sessions/"+creating+"/report-event", `{"event_type":"success"}`, a.as).want(200)
	for range 2 {
		if got := w.do("POST", "/v1/sessions/"+ended+"/terminate", "", a.as).want(200).str("data.status"); got != "terminated" {
			t.Error(got)
		}
	}
	w.do("POST", "/v1/sessions/"+static+"/rotate", "", a.as).refused(400, "INVALID_REQUEST")
	w.do("POST", "/v1/sessions/"+dynamic+"/renew", "", a.as).refused(400, "INVALID_REQUEST")
	w.do(
		"POST",
		"/v1/sessions/"+ended+"/renew",
		"",
		a.as,
	).refused(
		400,
		"INVALID_REQUEST",
	) // the type is checked before the state

	w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"nope"}}`, a.as).refused(404, "PRODUCT_NOT_FOUND")
	w.do("POST", "/v1/sessions", strings.Replace(oneGB, "}}", `,"max_cost":0.1}}`, 1), a.as).refused(409, "PRICE_MISMATCH")
	w.do(
		"POST",
		"/v1/sessions",
		`{"type":"static","config":{"product_no":"sta_async","quantity":1,"duration_days":30,"country":"US","provisioning_mode":"existing"}}`,
		a.as,
	).refused(
		409,
		"PRODUCT_OUT_OF_STOCK",
	)

	for _, local := range []bool{true, false} {
		w.provider.SetInProcess(local)
		for class, want := range map[procurement.Class]struct {
			status int
			code   string
		}{
			procurement.Temporary: {502, "PROVIDER_ERROR"}, procurement.TimedOut: {504, "PROVIDER_TIMEOUT"}, procurement.OutOfStock: {409, "PRODUCT_OUT_OF_STOCK"},
		} {
			// Always, not Next: a unit of work may run more than once.
			w.provider.Always(fake.Provision, fake.Refuse(class))
			w.provider.Always(fake.Rotate, fake.Refuse(class))
			r := w.do("POST", "/v1/sessions", oneGB, a.as).refused(want.status, want.code)
			if r.at("error.retryable") != true {
				t.Errorf("%s", r.body)
			}
			w.do("POST", "/v1/sessions/"+dynamic+"/rotate", "", a.as).refused(want.status, want.code)
			if class != procurement.OutOfStock { // which a check cannot meet
				w.prober.err = ports.Refusal(class)
				w.do("POST", "/v1/sessions/"+dynamic+"/check", "", a.as).refused(want.status, want.code)
			}
		}
	}
	w.provider.SetInProcess(true)
	w.provider.Always(fake.Provision, fake.Step{})
	w.provider.Always(fake.Rotate, fake.Step{})
	w.prober.err = nil
	if got := balance(); got != start {
		t.Errorf("the balance is %v, was %v", got, start)
	}

	for range 2 {
		w.do("POST", "/v1/sessions", oneGB, a.as).want(201)
	}
	r = w.do("POST", "/v1/sessions", oneGB, a.as).refused(429, "SESSION_LIMIT_REACHED")
	if s, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || s < 1 || r.at("error.retryable") != true {
		t.Errorf("%v %s", r.header, r.body)
	}
	checks := 0
	for ; checks < 20; checks++ {
		if r := w.do("POST", "/v1/sessions/"+dynamic+"/check", "", a.as); r.status != 200 {
			r.refused(429, "RATE_LIMIT_EXCEEDED")
			break
		}
	}
	if checks > 10 {
		t.Errorf("%d checks in a minute", checks)
	}
}

// TestProvisioning follows a session through each way its creation can end.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.provider.SetInProcess(false)
	a := w.register("Provisioning")
	body := `{"type":"dynamic","config":{"product_no":"dyn_async"}}`

	r := w.do("POST", "/v1/sessions", body, a.as).want(202)
	id := r.str("data.session_id")
	if r.header.Get("Location") != "/v1/sessions/"+id || r.at("data.proxy") != nil ||
		r.str("data.status") != "creating" {
		t.Errorf("%v %s", r.header, r.body)
	}
	w.work()
	r = w.do("GET", r.header.Get("Location"), "", a.as).want(200)
	if r.str("data.status") != "active" || r.str("data.proxy.full_url") == "" {
		t.Errorf("%s", r.body)
	}

	w.provider.Next(fake.Provision, fake.Refuse(procurement.Temporary))
	id = w.do("POST", "/v1/sessions", body, a.as).want(202).str("data.session_id")
	w.work()
	r = w.do("GET", "/v1/sessions/"+id, "", a.as).want(200)
	if r.str("data.status") != "failed" || r.str("data.failure.code") != "PROVIDER_ERROR" ||
		r.str("data.status_reason") != "provider_failed" ||
		r.at("data.proxy") != nil {
		t.Errorf("%s", r.body)
	}
	w.do("POST", "/v1/sessions/"+id+"/rotate", "", a.as).refused(410, "SESSION_EXPIRED")

	t.Run("an unknown outcome is 202", func(t *testing.T) {
		w.provider.Next(fake.Provision, fake.LoseAnswer())
		r := w.do("POST", "/v1/sessions", oneGB, a.as).want(202)
		if r.str("data.status") != "creating" || r.header.Get("Location") == "" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("a synchronous create that fails names the session", func(t *testing.T) {
		w.provider.Next(fake.Provision, fake.Refuse(procurement.Temporary))
		r := w.do("POST", "/v1/sessions", oneGB, a.as).refused(502, "PROVIDER_ERROR")
		id := r.str("error.details.session_id")
		if got := w.do("GET", "/v1/sessions/"+id, "", a.as).want(200).str("data.status"); got != "failed" {
			t.Errorf("%s is %q", id, got)
		}
	})
}

func TestFaultsOfOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.provider.SetInProcess(false)
	a := w.register("Faults")
	id := w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id")
	w.log.take()

	t.Run("an unknown error is INTERNAL_ERROR, logged once in full and answered without its text", func(t *testing.T) {
		w.prober.err = errors.New(`pq: SELECT secret FROM table WHERE key = "ak_x"`)
		r := w.do("POST", "/v1/sessions/"+id+"/check", "", a.as).refused(500, "INTERNAL_ERROR")
		if strings.Contains(string(r.body), "SELECT") || r.at("error.retryable") != true {
			t.Errorf("%s", r.body)
		}
		log := w.log.take()
		if strings.Count(log, "SELECT secret") != 1 || !strings.Contains(log, r.str("meta.request_id")) {
			t.Errorf("log %s", log)
		}
	})
	t.Run("a refusal that is not public is INTERNAL_ERROR", func(t *testing.T) {
		w.prober.err = fmt.Errorf("probe: %w", ports.ErrDuplicate)
		w.do("POST", "/v1/sessions/"+id+"/check", "", a.as).refused(500, "INTERNAL_ERROR")
	})
	t.Run("a panic is INTERNAL_ERROR", func(t *testing.T) {
		w.prober.err = panics{}
		r := w.do("POST", "/v1/sessions/"+id+"/check", "", a.as).refused(500, "INTERNAL_ERROR")
		if log := w.log.take(); !strings.Contains(log, "a handler panicked") ||
			strings.Contains(string(r.body), "goroutine") {
			t.Errorf("%s\n%s", r.body, log)
		}
	})
	t.Run("a request that was given up is SERVICE_UNAVAILABLE", func(t *testing.T) {
		w.prober.err = context.Canceled
		r := w.do("POST", "/v1/sessions/"+id+"/check", "", a.as).refused(503, "SERVICE_UNAVAILABLE")
		if r.header.Get("Retry-After") != "1" {
			t.Errorf("%v", r.header)
		}
	})
	t.Run("a closed store is SERVICE_UNAVAILABLE everywhere", func(t *testing.T) {
		w.must(w.hub.Poll(t.Context()))
		token := w.token(a)
		w.do("POST", "/v1/auth/refresh", "", bearer(token)).want(200) // the account is in memory
		w.must(w.store.Close())
		w.do("GET", "/v1/health", "").refused(503, "SERVICE_UNAVAILABLE")
		w.do("GET", "/v1/sessions", "", a.as).refused(503, "SERVICE_UNAVAILABLE")
		w.do("POST", "/v1/sessions", oneGB, a.as).refused(503, "SERVICE_UNAVAILABLE")
		w.do("POST", "/v1/account/register", `{"name":"ab"}`).refused(503, "SERVICE_UNAVAILABLE")
		w.do("GET", "/v1/sessions", "", header("X-API-Key", account.EarlyAPIKey(strings.Repeat("a", account.KeyRandom)))).refused(503, "SERVICE_UNAVAILABLE")
		w.do("POST", "/v1/auth/refresh", "", bearer(token)).want(200)
		w.clock.Advance(2 * time.Second) // they may have been revoked meanwhile
		w.do("GET", "/v1/products", "", a.as).want(200)
		w.do("POST", "/v1/auth/refresh", "", bearer(token)).refused(503, "SERVICE_UNAVAILABLE")
		w.do("POST", "/v1/auth/token", `{"api_key":"`+a.Key+`","api_secret":"`+a.Secret+`"}`).refused(503, "SERVICE_UNAVAILABLE")
	})
}

// panics is an error that panics when it is looked at.
type panics struct{}

func (panics) Error() string { panic("boom") }
func (panics) Is(error) bool { panic("boom") }
func (panics) As(any) bool   { panic("boom") }

func TestRequestIDsAndLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Logs")
	token := w.token(a, account.SessionsRead)
	w.log.take()
	r := w.do("GET", "/v1/sessions?product_no=s3cret&x=hunter2", "", a.as, header("X-Request-ID", "evil\" injected"), header("Cookie", "c00kie"))
	if id := r.header.Get("X-Request-ID"); id != r.str("meta.request_id") || !strings.HasPrefix(id, "req_") {
		t.Errorf("request id %q", id)
	}
	w.do("POST", "/v1/auth/token", `{"api_key":"`+a.Key+`","api_secret":"`+a.Secret+`"}`).want(200)
	w.do("GET", "/v1/sessions/p4th", "", bearer(token)).refused(404, "SESSION_NOT_FOUND")
	w.do("GET", "/v1/n0where", "")
	w.do("GET", "/v1/health", "", func(r *http.Request) { r.Method = "EVILMETHOD" })
	log := w.log.take()
	for _, secret := range []string{"s3cret", "hunter2", "evil", "EVIL", "c00kie", a.Key, a.Secret, token, "p4th", "n0where"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q: %s", secret, log)
		}
	}
	for _, want := range []string{`"route":"/v1/sessions"`, `"route":"/v1/sessions/:session_id"`, `"status":404`, `"agent_id":"` + a.ID + `"`, `"request_id":"` + r.str("meta.request_id")} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if n := strings.Count(log, "\n"); n != 5 {
		t.Errorf("%d lines for 5 requests: %s", n, log)
	}
	if at, err := time.Parse("2006-01-02T15:04:05.000Z", r.str("meta.timestamp")); err != nil ||
		!at.Equal(w.clock.Now()) {
		t.Errorf("timestamp %s", r.str("meta.timestamp"))
	}
}
