package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// caller is a seller that calls back.
type caller struct {
	*fake.Provider
	err error
}

func (c *caller) Callback(h map[string][]string, body []byte, _ time.Time) ([]string, error) {
	if http.Header(h).Get("X-Signature") != "good" || len(body) == 0 {
		return nil, domain.ErrInvalid
	}
	return nil, c.err
}

func TestProviderCallback(t *testing.T) {
	t.Parallel()
	seller := &caller{Provider: fake.NewProvider("calls")}
	seller.SetAsync(1)
	w := newWorld(
		t,
		options{
			more: []ports.Provider{seller},
			sell: []catalog.Product{product("sta_called", session.Static, false, "calls")},
		},
	)
	seller.SetClock(w.clock.Now)
	a := w.register("Called")
	const path = "/v1/providers/calls/callback"
	signed := header("X-Signature", "good")
	id := w.do("POST", "/v1/sessions", body("sta_called"), a.as).want(202).str("data.session_id")
	status := func() string {
		w.must(w.driver.DriveDue(t.Context()))
		return w.do("GET", "/v1/sessions/"+id, "", a.as).str("data.status")
	}
	if got := status(); got != "creating" {
		t.Fatalf("before the call the session is %s", got)
	}
	t.Run("a bad signature is 400 and does nothing", func(t *testing.T) {
		for _, with := range []func(*http.Request){header("X-Signature", "bad"), func(*http.Request) {}} {
			r := w.do("POST", path, `{"event":"x"}`, with).refused(400, "INVALID_REQUEST")
			if r.at("error.retryable") != false {
				t.Errorf("%s", r.body)
			}
		}
		w.do("POST", path, "", signed).refused(400, "INVALID_REQUEST")
		if got := status(); got != "creating" {
			t.Errorf("a forged call makes it %s", got)
		}
	})
	t.Run("an unknown provider, and one without callbacks, are 404", func(t *testing.T) {
		for _, name := range []string{"unknown", "fake", "calls-", "0"} {
			w.do("POST", "/v1/providers/"+name+"/callback", `{}`, signed).refused(404, "NOT_FOUND")
		}
		w.do("POST", "/v1/providers//callback", `{}`, signed).refused(404, "NOT_FOUND")
		for _, name := range []string{"CALLS", "calls%00", "..%5c", strings.Repeat("a", 33)} {
			if r := w.do("POST", "/v1/providers/"+name+"/callback", `{}`, signed); r.status != 400 && r.status != 404 {
				t.Errorf("%s: %d %s", name, r.status, r.body)
			}
		}
	})
	t.Run("another method is 405", func(t *testing.T) {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "HEAD"} {
			if r := w.do(method, path, "", signed).refused(405, "METHOD_NOT_ALLOWED"); r.header.Get("Allow") != "POST" {
				t.Errorf("%s: Allow %q", method, r.header.Get("Allow"))
			}
		}
	})
	t.Run("64 KiB are read, and not a byte more", func(t *testing.T) {
		seller.err = domain.ErrInvalid // so that it changes nothing
		for _, chunked := range []bool{false, true} {
			length := func(r *http.Request) {
				if chunked {
					r.ContentLength = -1
				}
			}
			w.do("POST", path, strings.Repeat("x", 64<<10), signed, length).refused(400, "INVALID_REQUEST")
			w.do("POST", path, strings.Repeat("x", 64<<10+1), signed, length).refused(413, "PAYLOAD_TOO_LARGE")
		}
		seller.err = nil
	})
	t.Run("no credential is asked for, and the body need not be JSON", func(t *testing.T) {
		w.do("POST", path, `not json`, signed, header("X-API-Key", "ak_wrong")).want(200)
		if got := status(); got != "active" {
			t.Errorf("after the call the session is %s", got)
		}
	})
}

// A call that was seen on its way, and is repeated with its signature, has orders read 120 times a
// minute at most.
func TestRepeatedCallbacksAreLimited(t *testing.T) {
	t.Parallel()
	one, two := &caller{Provider: fake.NewProvider("one")}, &caller{Provider: fake.NewProvider("two")}
	w := newWorld(t, options{more: []ports.Provider{one, two}})
	signed := header("X-Signature", "good")
	for range 120 {
		w.do("POST", "/v1/providers/one/callback", `{}`, signed).want(200)
	}
	if r := w.do("POST", "/v1/providers/one/callback", `{}`, signed).refused(429, "RATE_LIMIT_EXCEEDED"); r.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	w.do("POST", "/v1/providers/two/callback", `{}`, signed).want(200)
	w.clock.Advance(time.Minute)
	w.do("POST", "/v1/providers/one/callback", `{}`, signed).want(200)
}
