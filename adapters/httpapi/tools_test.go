package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/httpapi"
	"agentproxy/domain/account"
)

func TestToolsAreGuardedAsTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 6, tools: func(w http.ResponseWriter, r *http.Request, a *httpapi.Agent) {
		body, _ := io.ReadAll(r.Body)
		if a.May("billing:write") {
			w.Header().Set("Can-Pay", "yes")
		}
		status, answer, err := a.Run(r.Context(), "GET", "/account/info", "", nil)
		if err != nil || string(body) != "hello" {
			status = 500
		}
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}})
	a := w.register("Agent")

	r := w.do("POST", "/mcp", "hello").refused(401, "AUTH_INVALID_KEY")
	// The address of the listener, since none is configured: the Host header decides nothing.
	const base = "http://127.0.0.1:0"
	const metadata = base + "/.well-known/oauth-protected-resource/mcp"
	if got := r.header.Get("WWW-Authenticate"); got != `Bearer resource_metadata="`+metadata+`"` {
		t.Errorf("WWW-Authenticate is %s", got)
	}
	for _, path := range []string{strings.TrimPrefix(metadata, base), "/.well-known/oauth-protected-resource"} {
		m := w.do("GET", path, "", func(r *http.Request) { r.Host = `evil.example";id;"` }).want(200)
		if m.str("resource") != base+"/mcp" || bytes.Contains(m.body, []byte("evil")) {
			t.Errorf("%s: %s", path, m.body)
		}
	}
	w.do("POST", "/mcp", "hello", bearer("ak_"+strings.Repeat("x", 43))).refused(401, "AUTH_INVALID_KEY")
	w.do("POST", "/mcp", "hello", header("Authorization", "Basic eDp5")).refused(401, "AUTH_INVALID_KEY")
	w.do("GET", "/mcp", "", a.as).refused(405, "METHOD_NOT_ALLOWED")
	w.do("DELETE", "/mcp", "", a.as).refused(405, "METHOD_NOT_ALLOWED")
	for _, origin := range []string{"https://evil.example", "null", "http://localhost:1"} {
		w.do("POST", "/mcp", "hello", a.as, header("Origin", origin)).refused(403, "CROSS_SITE_REQUEST")
	}
	for _, with := range []func(*http.Request){a.as, bearer(a.Key), header("X-API-Key", a.Key)} {
		r := w.do("POST", "/mcp", "hello", with, header("Origin", "http://localhost")).want(200)
		if r.str("data.agent_id") != a.ID || r.header.Get("Can-Pay") != "yes" {
			t.Errorf("%v %s", r.header, r.body)
		}
	}
	// The operation needs account:read, but the tool that runs it is checked by its own permission.
	token := w.token(a, account.ProductsRead)
	r = w.do("POST", "/mcp", "hello", bearer(token)).want(200)
	if r.str("data.auth_mode") != "token" || r.header.Get("Can-Pay") != "" {
		t.Errorf("%v %s", r.header, r.body)
	}
	w.do("POST", "/mcp", strings.Repeat("x", 1<<20+1), a.as).refused(413, "PAYLOAD_TOO_LARGE")
	// Each request counts once, with the operations that it ran.
	w.do("POST", "/mcp", "hello", a.as).want(200)
	w.do("POST", "/mcp", "hello", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	w.clock.Advance(time.Minute)
	batch := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
	w.do("POST", "/mcp", batch(21), a.as).refused(400, "INVALID_REQUEST")
	w.do("POST", "/mcp", "[1,", a.as).refused(400, "INVALID_REQUEST")
	// Each message of a batch counts: of 6 a minute, 4 are left.
	w.do("POST", "/mcp", batch(4), a.as).want(500)
	w.do("POST", "/mcp", "hello", a.as).refused(429, "RATE_LIMIT_EXCEEDED")
	if log := w.log.take(); strings.Count(log, `"route":"/v1/account/info"`) != 0 || strings.Contains(log, a.Key) {
		t.Errorf("the log has\n%s", log)
	}
}
