package httpapi_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMisspeltNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	balance := func() float64 { return w.do("GET", "/v1/billing/balance", "", a.as).want(200).num("data.balance") }
	static := `{"type":"static","config":{"product_no":"sta_isp_1","quantity":1,"duration_days":30,"country":"DE"}}`
	for _, c := range []struct{ method, path, body, field, meant string }{
		{"POST", "/v1/sessions", strings.Replace(static, "country", "contry", 1), "config.contry", "country"},
		{"POST", "/v1/sessions", strings.Replace(static, "config", "confg", 1), "confg", "config"},
		{"POST", "/v1/sessions", `{"type":"dynamic","max_cots":1,"config":{"product_no":"p"}}`, "max_cots", "max_cost"},
		{"POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"p","rotation":{"mod":"timed"}}}`, "config.rotation.mod", "mode"},
		{"POST", "/v1/sessions", `{"type":"dynamic","Config":{"product_no":"p"}}`, "Config", "config"},
		{"POST", "/v1/telemetry/batch", `{"events":[{"session_id":"s","event_type":"block","status_cod":403}]}`,
			"events[0].status_cod", "status_code"},
		{"PUT", "/v1/account/info", `{"webhok_url":null}`, "webhok_url", "webhook_url"},
		{"POST", "/v1/sessions?dryrun=true", static, "dryrun", "dry_run"},
		{"GET", "/v1/sessions?page_sizes=3", "", "page_sizes", "page_size"},
	} {
		before := balance()
		r := w.do(c.method, c.path, c.body, a.as).refused(400, "INVALID_REQUEST")
		if r.str("error.details.fields.0.field") != c.field || !strings.HasSuffix(r.str("error.details.fields.0.issue"), "did you mean "+c.meant+"?") {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, r.body)
		}
		if after := balance(); after != before {
			t.Errorf("%s %s changed the balance from %v to %v", c.method, c.path, before, after)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/v1/account/info", `{"unknown":1,"metadata":{"contry":1},"COUNTRY":2}`},
		{"POST", "/v1/billing/recharge?dry_run=true", `{"amount":10,"currency":"USD"}`}, // as a published client does
	} {
		w.do(c.method, c.path, c.body, a.as).want(200)
	}
	r := w.do("POST", "/v1/account/rotate-secret?force=true", "", a.as).refused(400, "INVALID_REQUEST")
	if r.str("error.details.fields.0.field") != "force" {
		t.Errorf("%s", r.body)
	}
}

func TestUnknownPathsNameTheNearest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for path, want := range map[string]string{
		"/v1/session":                      "/v1/sessions",
		"/sessions":                        "/v1/sessions",
		"/account/register":                "/v1/account/register",
		"/v1/accounts/register":            "/v1/account/register",
		"/v1/sessions/sess_x/rotat":        "/v1/sessions/{session_id}/rotate",
		"/v1/billing/balances":             "/v1/billing/balance",
		"/v1/account/balance":              "/v1/billing/balance",
		"/balance":                         "/v1/billing/balance",
		"/v1/rotate":                       "/v1/sessions/{session_id}/rotate",
		"/wp-login.php":                    "",
		"/v1/" + strings.Repeat("a", 1000): "",
	} {
		r := w.do("GET", path, "").refused(404, "NOT_FOUND")
		got, _ := r.at("error.details.nearest").(string)
		if got != want {
			t.Errorf("%s: the nearest is %q, want %q", path, got, want)
		}
	}
	if got := w.do("GET", "/v1/sessions", "").refused(401, "AUTH_INVALID_KEY").str("error.details.register"); got != "POST /v1/account/register" {
		t.Errorf("register is %q", got)
	}
}

func TestAnswersOfRealClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	server := httptest.NewServer(w.server.Handler())
	t.Cleanup(server.Close)
	send := func(method, path string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		w.must(err)
		r.Header.Set("X-API-Key", a.Key)
		r.Header.Set("Accept-Encoding", "identity")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := server.Client().Do(r)
		w.must(err)
		body, err := io.ReadAll(res.Body)
		w.must(err)
		w.must(res.Body.Close())
		return res, body
	}
	t.Run("above 1 kB they are compressed on request", func(t *testing.T) {
		_, plain := send("GET", "/v1/products")
		res, packed := send("GET", "/v1/products", "Accept-Encoding", "br, gzip;q=0.8")
		if len(plain) <= 1024 || len(packed) >= len(plain) || res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%d bytes as %d with %v", len(plain), len(packed), res.Header)
		}
		unpacked, err := gzip.NewReader(strings.NewReader(string(packed)))
		w.must(err)
		text, err := io.ReadAll(unpacked)
		w.must(err)
		// All but the id and the time of the request.
		if got, want := string(text), string(plain); got[:strings.Index(got, `"meta"`)] != want[:strings.Index(want, `"meta"`)] {
			t.Errorf("unpacked %s", got)
		}
		if res, _ = send("GET", "/v1/health", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" {
			t.Errorf("a short answer has %v", res.Header)
		}
		if res, _ = send("GET", "/v1/products", "Accept-Encoding", "gzip;q=0"); res.Header.Get("Content-Encoding") != "" {
			t.Errorf("a refused encoding has %v", res.Header)
		}
	})
	t.Run("HEAD answers as GET without a body", func(t *testing.T) {
		for _, path := range []string{"/v1/health", "/v1/account/info", "/v1/openapi.json", "/docs"} {
			get, body := send("GET", path)
			head, none := send("HEAD", path)
			if head.StatusCode != 200 || len(none) != 0 || head.ContentLength != get.ContentLength || get.ContentLength != int64(len(body)) ||
				head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
				t.Errorf("%s: %v, %d bytes announced, %d with GET", path, head.Status, head.ContentLength, get.ContentLength)
			}
		}
		if res, _ := send("HEAD", "/v1/sessions/sess_none"); res.StatusCode != 404 {
			t.Errorf("of nothing: %s", res.Status)
		}
		if res, _ := send("HEAD", "/v1/account/register"); res.StatusCode != 405 {
			t.Errorf("where GET is not taken: %s", res.Status)
		}
	})
	t.Run("a document that the client has is not sent again", func(t *testing.T) {
		for _, path := range []string{"/openapi.json", "/v1/openapi.json", "/docs", "/docs/docs.css"} {
			res, _ := send("GET", path, "Accept-Encoding", "gzip")
			tag := res.Header.Get("ETag")
			again, body := send("GET", path, "If-None-Match", tag)
			if tag == "" || again.StatusCode != 304 || len(body) != 0 || again.Header.Get("ETag") != tag {
				t.Errorf("%s: tag %q, then %s with %d bytes", path, tag, again.Status, len(body))
			}
			if other, body := send("GET", path, "If-None-Match", `"other"`); other.StatusCode != 200 || len(body) == 0 {
				t.Errorf("%s: another tag gets %s", path, other.Status)
			}
		}
	})
}
