package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/httpapi"
	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

var rateLimitHeaders = []string{
	"X-RateLimit-Limit",
	"X-RateLimit-Remaining",
	"X-RateLimit-Reset",
	"RateLimit",
	"RateLimit-Policy",
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 6})
	a := w.register("Limited")

	t.Run("every authenticated answer shows what is left", func(t *testing.T) {
		form := regexp.MustCompile(`^"default";r=(\d+);t=(\d+)$`)
		for i, path := range []string{"/v1/account/info", "/v1/sessions/unknown", "/v1/sessions?page=0"} {
			r := w.do("GET", path, "", a.as)
			if got := r.header.Get("X-RateLimit-Remaining"); got != strconv.Itoa(5-i) {
				t.Errorf("%s: remaining %s", path, got)
			}
			if m := form.FindStringSubmatch(r.header.Get("RateLimit")); m == nil || m[1] != strconv.Itoa(5-i) ||
				m[2] != strconv.Itoa(10*(i+1)) {
				t.Errorf("%s: RateLimit %s", path, r.header.Get("RateLimit"))
			}
			if got := r.header.Get("RateLimit-Policy"); got != `"default";q=6;w=60` {
				t.Errorf("policy %s", got)
			}
			if got, want := r.header.Get("X-RateLimit-Reset"), strconv.FormatInt(w.clock.Now().Unix()+int64(10*(i+1)), 10); got != want {
				t.Errorf("reset %s, want %s", got, want)
			}
		}
	})
	t.Run("waiting for Retry-After is enough", func(t *testing.T) {
		for range 3 {
			w.do("GET", "/v1/account/info", "", a.as).want(200)
		}
		r := w.do("GET", "/v1/account/info", "", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
		if r.at("error.retryable") != true || r.header.Get("Retry-After") != "10" ||
			r.header.Get("RateLimit") != `"default";r=0;t=10` {
			t.Errorf("%s %v", r.body, r.header)
		}
		w.clock.Advance(9 * time.Second)
		w.do("GET", "/v1/account/info", "", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
		w.clock.Advance(time.Second)
		w.do("GET", "/v1/account/info", "", a.as).want(200)
	})
	t.Run("a limit of the agent's own holds, and 0 has no headers", func(t *testing.T) {
		w.must(w.accounts.SetRateLimit(context.Background(), a.ID, 0))
		r := w.do("GET", "/v1/account/info", "", a.as).want(200)
		for _, h := range rateLimitHeaders {
			if v := r.header.Get(h); v != "" {
				t.Errorf("%s: %s", h, v)
			}
		}
		if r.num("data.rate_limit.requests_per_minute") != 0 {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("two agents have two limits", func(t *testing.T) {
		b := w.register("Other")
		if got := w.do("GET", "/v1/account/info", "", b.as).want(200).header.Get("X-RateLimit-Remaining"); got != "5" {
			t.Errorf("remaining %s", got)
		}
	})
	t.Run("of many at once exactly the limit passes", func(t *testing.T) {
		c := w.register("Parallel")
		var passed atomic.Int32
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if w.do("GET", "/v1/account/info", "", c.as).status == 200 {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		if passed.Load() != 6 {
			t.Errorf("%d passed, want 6", passed.Load())
		}
	})
}

func from(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }

func TestRegistrationLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{registrations: 2})
	try := func(with ...func(*http.Request)) *answer {
		return w.do("POST", "/v1/auth/register", `{"name":"ab"}`, with...)
	}
	try(from("192.0.2.7:1")).want(201)
	w.do("POST", "/v1/account/register", `{"name":"ab"}`, from("192.0.2.7:2")).want(201)
	for i := range 5 { // a forged header changes nothing
		r := try(from("192.0.2.7:3"), header("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))).refused(429, "RATE_LIMIT_EXCEEDED")
		if s, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || s < 1 {
			t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
		}
	}
	try(from("192.0.2.8:1")).want(201)
	// One network of 64 bits is one client.
	try(from("[2001:db8:1:2::1]:1")).want(201)
	try(from("[2001:db8:1:2:ffff::2]:1")).want(201)
	try(from("[2001:db8:1:2:abcd::3]:1")).refused(429, "RATE_LIMIT_EXCEEDED")
	try(from("[2001:db8:1:3::1]:1")).want(201)
	w.clock.Advance(time.Minute)
	try(from("192.0.2.7:1")).want(201)
	t.Run("it counts before the body is read", func(t *testing.T) {
		unread := func(r *http.Request) { r.Body = io.NopCloser(untouched{t}) }
		for range 2 {
			w.do("POST", "/v1/auth/register", `{"name":`, from("192.0.2.9:1")).refused(400, "INVALID_REQUEST")
		}
		try(from("192.0.2.9:1"), unread).refused(429, "RATE_LIMIT_EXCEEDED")
	})
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a refused registration is read")
	return 0, io.EOF
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, c := range []struct{ socket, forwarded, want string }{
		{"192.0.2.7:1", "", "192.0.2.7"},
		{"192.0.2.7:1", "198.51.100.1", "192.0.2.7"},
		{"10.0.0.1:1", "", "10.0.0.1"},
		{"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "203.0.113.9, 198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:1", "evil, 10.0.0.2", "10.0.0.2"},
		{"10.0.0.1:1", "2001:db8::1", "2001:db8::1"},
		{"10.0.0.1:1", "[2001:db8::1]:443", "2001:db8::1"},
		{"10.0.0.1:1", "198.51.100.1:80", "198.51.100.1"},
		{"[::ffff:192.0.2.7]:1", "", "192.0.2.7"},
		{"[fe80::1%eth0]:1", "", "fe80::1"},
	} {
		r := w.do("GET", "/v1/ip", "", from(c.socket), header("X-Forwarded-For", c.forwarded), header("X-Real-IP", "1.2.3.4"))
		if got := r.want(200).str("data.ip"); got != c.want {
			t.Errorf("%s forwarded for %q: %s, want %s", c.socket, c.forwarded, got, c.want)
		}
	}
}

// A call costs one more for each 25 items beyond the first 25 that it makes, changes or reads; what is too dear is
// refused before it changes something.
func TestACallCostsByItsItems(t *testing.T) {
	t.Parallel()
	o := crowded(t, 5)
	o.perMinute = 600
	o.tools = func(rw http.ResponseWriter, r *http.Request, a *httpapi.Agent) {
		path, _ := io.ReadAll(r.Body)
		_, answer, _ := a.Run(r.Context(), "GET", string(path), "", nil)
		_, _ = rw.Write(answer)
	}
	w := newWorld(t, o)
	a := w.register("Costly")
	at := w.local(a)
	left := 599
	call := func(cost int, method, path, body string) {
		t.Helper()
		left -= cost
		r := w.do(method, path, body, a.as)
		if got := r.header.Get("X-RateLimit-Remaining"); r.status >= 300 || got != strconv.Itoa(left) {
			t.Errorf("%s %s: %d, %s remain, want %d", method, path, r.status, got, left)
		}
	}
	events := func(n int) string {
		return `{"events":[` + strings.TrimSuffix(strings.Repeat(`{"session_id":"`+at[len("/v1/sessions/"):]+
			`","event_type":"success"},`, n), ",") + `]}`
	}
	call(1, "GET", at+"/workers", "")
	call(1, "POST", "/v1/telemetry/batch", events(25))
	call(2, "POST", "/v1/telemetry/batch", events(26))
	call(40, "POST", "/v1/telemetry/batch", events(1000))
	call(40, "POST", at+"/workers", `{"count":1000}`)
	call(1+4, "GET", at+"/workers?page_size=25", "") // and the health of 1,000 is summed up
	call(4+4, "GET", at+"/workers?page_size=100", "")
	call(4, "GET", at+"/events?page_size=100", "")
	for _, path := range []string{at, at + "/health", at + "/connect", at + "/workers/w5", "/v1/sessions", at + "/workers?page_size=25"} {
		call(1+4, "GET", path, "")
	}
	call(1+4, "POST", at+"/workers/w5/rotate", `{}`)
	rules := func(n int) string {
		return `{"mode":"enforce","deny":["x.example"` + strings.Repeat(`,"x.example"`, n-1) + `]}`
	}
	call(1, "PUT", at+"/policy", rules(25))
	call(4, "PUT", at+"/policy", rules(100))
	call(4, "GET", at+"/policy", "")
	// What a tool has read is counted when it is done: the next call shows it.
	w.do("POST", "/mcp", at[len("/v1"):], a.as).want(200)
	left -= 1 + 4
	call(1, "GET", "/v1/account/info", "")
	for left >= 40 {
		call(40, "POST", "/v1/telemetry/batch", events(1000))
	}
	w.do("PUT", at+"/policy", rules(1000), a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	left--
	w.do("POST", "/v1/telemetry/batch", events(1000), a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	left--
	call(1, "GET", "/v1/account/info", "")
}

// The accounts on trial of a network share what they may call, by whatever address; one that paid does not.
func TestTrialsOfANetworkShareTheirCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 600, config: func(c *accounts.Config) { c.Dev, c.KeepOriginDays = false, 90 }})
	w.doc = nil
	var trials []agent
	for i := range 4 {
		trials = append(trials, w.register(fmt.Sprint("Trial", i)))
	}
	paid := w.register("Paid")
	_, err := ledger.NewWallet(w.store, w.clock, w.ids).Adjust(t.Context(), paid.ID, domain.Dollar, "paid")
	w.must(err)
	allowed := 0
	for range 500 {
		for _, a := range trials {
			if w.do("GET", "/v1/account/info", "", a.as).status == 200 {
				allowed++
			}
		}
	}
	if allowed != 1200 {
		t.Errorf("%d calls of four accounts on trial, want 1200", allowed)
	}
	w.do("GET", "/v1/account/info", "", trials[0].as).refused(429, "RATE_LIMIT_EXCEEDED")
	w.do("GET", "/v1/account/info", "", paid.as).want(200)
	w.clock.Advance(time.Minute)
	w.do("GET", "/v1/account/info", "", trials[0].as).want(200)
}

// Each new API secret is an event for the webhook, which no budget of stored bytes refuses: ten may come in a minute.
func TestSecretsAreRotatedTenTimesAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 600})
	a, other := w.register("Busy"), w.register("Other")
	for range 10 {
		w.do("POST", "/v1/account/rotate-secret", "", a.as).want(200)
	}
	w.do("POST", "/v1/account/rotate-secret", "", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	w.do("POST", "/v1/account/rotate-secret", "", other.as).want(200)
	w.clock.Advance(time.Minute)
	w.do("POST", "/v1/account/rotate-secret", "", a.as).want(200)
}

// A new password of a session is an event of its log: an agent has sixty in a minute, of all of its sessions.
func TestPasswordsAreReplacedSixtyTimesAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 600})
	a, other := w.register("Busy"), w.register("Other")
	var paths []string
	for range 2 {
		id, _ := w.buyNow(a)
		paths = append(paths, "/v1/sessions/"+id+"/rotate-password")
	}
	for i := range 60 {
		w.do("POST", paths[i%2], "", a.as).want(200)
	}
	w.do("POST", paths[0], "", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	id, _ := w.buyNow(other)
	w.do("POST", "/v1/sessions/"+id+"/rotate-password", "", other.as).want(200)
	w.clock.Advance(time.Minute)
	w.do("POST", paths[0], "", a.as).want(200)
}
