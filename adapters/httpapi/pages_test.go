package httpapi_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/adapters/mcp"
)

func toolTable() (list []pages.Tool) {
	for _, t := range mcp.Listings() {
		list = append(list, pages.Tool{Name: t.Name, Scope: t.Scope, Does: t.Description})
	}
	return list
}

func gatewayErrors() (list []pages.Refusal) {
	for _, r := range refusal.Documented() {
		list = append(list, pages.Refusal{Code: r.Code.String(), Status: r.Status, Retryable: r.Retryable(), Message: r.Message})
	}
	return list
}

// noTools is a service of tools that the tests of pages need and do not call.
func noTools(http.ResponseWriter, *http.Request, *httpapi.Agent) {}

// noPages is a console without a signed-in agent.
func noPages(http.ResponseWriter, *http.Request, netip.Addr) (agentID string, outage error) {
	return "", nil
}

// get reads a page, with headers in pairs.
func (w *world) get(method, path string, headers ...string) *http.Response {
	w.t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, r)
	return rec.Result()
}

// page returns the text of a page that is there.
func (w *world) page(path string, headers ...string) string {
	w.t.Helper()
	r := w.get("GET", path, headers...)
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		w.t.Fatalf("GET %s: %d, %v: %s", path, r.StatusCode, err, body)
	}
	return string(body)
}

// documentation are the pages in Markdown.
var documentation = []string{"/llms.txt", "/llms-full.txt", "/skill.md", "/docs/quickstart.md", "/docs/sessions.md", "/docs/workers.md",
	"/docs/errors.md", "/docs/money.md", "/docs/clients.md", "/docs/mcp.md", "/docs/apx.md", "/docs/policy.md", "/docs/webhooks.md", "/docs/api.md"}

func TestPagesWithoutACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{tools: noTools})
	for path, kind := range map[string]string{
		"/llms.txt": "text/plain", "/llms-full.txt": "text/plain", "/robots.txt": "text/plain", "/skill.md": "text/markdown",
		"/docs/quickstart.md": "text/markdown", "/docs/api.md": "text/markdown", "/docs/home.css": "text/css",
		"/openapi.json": "application/json", "/.well-known/api-catalog": "application/linkset+json", "/.well-known/security.txt": "text/plain",
	} {
		r := w.get("GET", path)
		if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), kind) || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
		head := w.get("HEAD", path)
		body, _ := io.ReadAll(head.Body)
		if head.StatusCode != 200 || len(body) > 0 || head.Header.Get("ETag") != r.Header.Get("ETag") {
			t.Errorf("HEAD %s: %d with %d bytes", path, head.StatusCode, len(body))
		}
		if again := w.get("GET", path, "If-None-Match", r.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
		if posted := w.get("POST", path); posted.StatusCode != 405 {
			t.Errorf("POST %s: %d", path, posted.StatusCode)
		}
	}
	for _, path := range documentation {
		text, most := w.page(path), 12_000
		switch path {
		case "/llms.txt":
			most = 8_000
		case "/llms-full.txt":
			most = 50_000
		}
		if n := len(text); n > most || utf8.RuneCountInString(text) < 500 {
			t.Errorf("%s has %d bytes, at most %d", path, n, most)
		}
		if strings.HasPrefix(path, "/docs/") && !strings.HasPrefix(text, "> All pages of this service: http://127.0.0.1:0/llms.txt\n") {
			t.Errorf("%s does not begin with a pointer to llms.txt: %.80s", path, text)
		}
		if strings.HasPrefix(path, "/docs/") && !strings.Contains(w.page("/llms.txt"), "http://127.0.0.1:0"+path) {
			t.Errorf("llms.txt does not list %s", path)
		}
	}
	packed := w.get("GET", "/llms-full.txt", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatalf("it is not compressed: %v, %v", packed.Header, err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != w.page("/llms-full.txt") {
		t.Errorf("compressed it differs: %v", err)
	}
}

func TestFirstPageIsWhatTheClientPrefers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct{ path, accept, want string }{
		{"/", "", "application/json"},
		{"/", "*/*", "application/json"},
		{"/", "application/json", "application/json"},
		{"/", "nonsense;;, text/html;q=x", "application/json"},
		{"/", "text/html;q=0", "application/json"},
		{"/", "text/html;q=0.5, application/json", "application/json"},
		{"/", browser, "text/html"},
		{"/v1", browser, "text/html"},
		{"/v1", "*/*", "application/json"},
		{"/", "text/markdown", "text/markdown"},
		{"/v1", "text/markdown, text/html, */*", "text/markdown"},
		{"/", "text/markdown;q=0.3, text/html;q=0.7", "text/html"},
		{"/docs", "", "text/html"},
		{"/docs", "*/*", "text/html"},
		{"/docs", browser, "text/html"},
		{"/docs", "text/markdown, text/html, */*", "text/markdown"},
		{"/docs", "text/markdown;q=0.1, */*", "text/html"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := w.get(method, c.path, "Accept", c.accept)
			if got, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); r.StatusCode != 200 || got != c.want {
				t.Errorf("%s %s with %q: %d %s, want %s", method, c.path, c.accept, r.StatusCode, got, c.want)
			}
			if r.Header.Get("Link") != `</llms.txt>; rel="llms-txt"` || !strings.Contains(strings.Join(r.Header["Vary"], ","), "Accept") {
				t.Errorf("%s %s: %v", method, c.path, r.Header)
			}
		}
	}
	if w.page("/", "Accept", "text/markdown") != w.page("/llms.txt") {
		t.Error("the first page in Markdown is not llms.txt")
	}
	if w.page("/docs", "Accept", "text/markdown") != w.page("/docs/api.md") {
		t.Error("the reference in Markdown is not the page of operations")
	}
}

// The addresses that pages contain are configured: a Host header is a client's word.
func TestPagesNameTheConfiguredAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, path := range append([]string{"/", "/.well-known/api-catalog", "/.well-known/security.txt"}, documentation...) {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, r)
		if body := rec.Body.String(); rec.Code != 200 || strings.Contains(body, "evil") || !strings.Contains(body, "http://127.0.0.1:0/") {
			t.Errorf("%s: %d %.300s", path, rec.Code, body)
		}
	}
}

func TestSecurityText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	text := w.page("/.well-known/security.txt")
	m := regexp.MustCompile(`(?m)^Expires: (.+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("it has no date: %s", text)
	}
	expires, err := time.Parse(time.RFC3339, m[1])
	if ahead := expires.Sub(w.clock.Now()); err != nil || ahead < 30*24*time.Hour || ahead > 365*24*time.Hour {
		t.Errorf("it is valid for %s, %v", ahead, err)
	}
	if !strings.HasPrefix(text, "Contact: mailto:abuse@example.com\n") || !strings.Contains(text, "\nCanonical: http://127.0.0.1:0/.well-known/security.txt\n") {
		t.Errorf("%s", text)
	}
	w.clock.Advance(40 * 24 * time.Hour)
	if w.page("/.well-known/security.txt") == text {
		t.Error("the date does not move on")
	}
	plain := httpapi.New(httpapi.Config{}, *w.server.Deps)
	rec := httptest.NewRecorder()
	plain.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/.well-known/security.txt", nil))
	if rec.Code != 404 {
		t.Errorf("without a contact: %d %s", rec.Code, rec.Body)
	}
}

func TestCatalogOfAPIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{tools: noTools})
	r := w.get("HEAD", "/.well-known/api-catalog")
	if r.Header.Get("Content-Type") != `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"` ||
		r.Header.Get("Link") != `</.well-known/api-catalog>; rel="api-catalog"` {
		t.Errorf("%v", r.Header)
	}
	var set struct {
		Linkset []map[string]json.RawMessage `json:"linkset"`
	}
	if err := json.Unmarshal([]byte(w.page("/.well-known/api-catalog")), &set); err != nil || len(set.Linkset) != 3 {
		t.Fatalf("%+v, %v", set, err)
	}
	for _, links := range set.Linkset {
		for rel, text := range links {
			var targets []struct{ Href, Type string }
			if rel == "anchor" {
				continue
			}
			if err := json.Unmarshal(text, &targets); err != nil || len(targets) == 0 {
				t.Errorf("%s: %s, %v", rel, text, err)
			}
			for _, target := range targets {
				path := strings.TrimPrefix(target.Href, "http://127.0.0.1:0")
				if got := w.get("GET", path, "Accept", target.Type); path != "/mcp" && (got.StatusCode != 200 || got.Header.Get("Content-Type") == "") {
					t.Errorf("%s: %d", path, got.StatusCode)
				}
			}
		}
	}
}

func TestErrorsLinkToTheirRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Reader")
	for _, r := range []*answer{
		w.do("GET", "/v1/sessions/sess_x", "", a.as).refused(404, "SESSION_NOT_FOUND"),
		w.do("GET", "/v1/account/info", "").refused(401, "AUTH_INVALID_KEY"),
		w.do("GET", "/v1/nothing", "").refused(404, "NOT_FOUND"),
		w.do("DELETE", "/v1/health", "").refused(405, "METHOD_NOT_ALLOWED"),
		w.do("POST", "/v1/account/register", "{}").refused(400, "INVALID_REQUEST"),
	} {
		page, code, _ := strings.Cut(r.str("error.details.docs"), "#")
		if page != "/docs/errors.md" || code != r.str("error.code") || !strings.Contains(w.page(page), "\n| `"+code+"` |") {
			t.Errorf("%s links to %s", r.str("error.code"), r.str("error.details.docs"))
		}
	}
	for path, want := range map[string]string{"/llm.txt": "/llms.txt", "/docs/quickstart": "/docs/quickstart.md", "/openapi.yaml": "/openapi.json",
		"/.well-known/apicatalog": "/.well-known/api-catalog", "/v1/": "/v1", "/sessions": "/v1/sessions"} {
		if got := w.do("GET", path, "").refused(404, "NOT_FOUND").str("error.details.nearest"); got != want {
			t.Errorf("%s: the nearest is %q, want %s", path, got, want)
		}
	}
}

func TestSkillFollowsTheFormat(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../skills/agentproxy/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "---\n")
	head, body, closed := strings.Cut(rest, "\n---\n")
	for line := range strings.Lines(head) {
		name, _, _ := strings.Cut(line, ":")
		if !slices.Contains([]string{"name", "description", "license", "compatibility"}, name) {
			t.Errorf("the format has no field %s", name)
		}
	}
	if len(body) > 20_000 { // about 5,000 tokens
		t.Errorf("the body has %d bytes", len(body))
	}
	field := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `: (.*)$`).FindStringSubmatch(head)
		if m == nil {
			t.Fatalf("it has no %s", name)
		}
		return m[1]
	}
	if d := field("description"); !closed || field("name") != "agentproxy" || len(d) > 1024 || len(field("compatibility")) > 500 ||
		strings.Contains(d, ": ") || strings.Count(body, "\n") >= 500 {
		t.Errorf("the head is %s", head)
	}
}
