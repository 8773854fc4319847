package ui_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
)

func TestPagesAreParsedWhenOneIsShown(t *testing.T) {
	pages := ui.Parse(fstest.MapFS{"wrong.html": {Data: []byte(`{{define "content"}}{{end`)}}, nil)
	defer func() {
		if recover() == nil {
			t.Error("a wrong template was shown")
		}
	}()
	_ = pages.Render(httptest.NewRecorder(), http.StatusOK, "wrong", ui.Frame{})
}

func TestAPageEscapesWhatItShows(t *testing.T) {
	pages := ui.Parse(fstest.MapFS{
		"_row.html": {Data: []byte(`{{define "row"}}<b>{{.}}</b>{{end}}`)},
		"one.html":  {Data: []byte(`{{define "content"}}{{template "row" .Data}}{{end}}`)},
		"bad.html":  {Data: []byte(`{{define "content"}}{{.Data.Missing}}{{end}}`)},
	}, nil)
	const markup = `<img src=x onerror=alert(1)>"'`
	rec := httptest.NewRecorder()
	err := pages.Render(rec, http.StatusTeapot, "one", ui.Frame{Base: "/console", Brand: "agentproxy", Title: markup,
		Who: markup, SignOut: "/console/sign-out", Notice: markup, Nav: []ui.Link{{Href: "/", Text: markup, Current: true}},
		Problem: &ui.Problem{Code: markup, Message: markup, Fields: []ui.Field{{Name: markup, Issue: markup}}}, Data: markup})
	body := rec.Body.String()
	if err != nil || rec.Code != http.StatusTeapot {
		t.Fatalf("%d, %v", rec.Code, err)
	}
	if strings.Contains(body, "<img") || strings.Count(body, "<h1>") != 1 || strings.Count(body, "&lt;img") < 9 {
		t.Errorf("the page is\n%s", body)
	}
	for _, name := range []string{"bad", "none"} {
		rec := httptest.NewRecorder()
		if err := pages.Render(rec, http.StatusOK, name, ui.Frame{Data: "text"}); err == nil || rec.Body.Len() > 0 {
			t.Errorf("%s: %v after %q", name, err, rec.Body)
		}
	}
}

func TestSecure(t *testing.T) {
	h := ui.Secure(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		method, header, value string
		want                  int
	}{
		{"GET", "Sec-Fetch-Site", "cross-site", http.StatusOK},
		{"POST", "Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"POST", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"POST", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"POST", "Origin", "http://example.com", http.StatusOK},
		{"POST", "Origin", "https://evil.test", http.StatusForbidden},
		{"POST", "Origin", "null", http.StatusForbidden},
	} {
		r := httptest.NewRequest(c.method, "http://example.com/", nil)
		r.Header.Set(c.header, c.value)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%s with %s %s answers %d, want %d", c.method, c.header, c.value, rec.Code, c.want)
		}
		if got := rec.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self';") ||
			strings.Contains(got, "unsafe") || strings.Contains(got, "http") {
			t.Errorf("the policy is %q", got)
		}
		if rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("X-Frame-Options") != "DENY" {
			t.Errorf("the headers are %v", rec.Header())
		}
	}
}

func TestAssets(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x/assets/{name}", ui.Assets)
	get := func(path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		return rec
	}
	for name, kind := range map[string]string{"htmx.min.js": "text/javascript", "uPlot.iife.min.js": "text/javascript",
		"console.css": "text/css", "icon.svg": "image/svg+xml", "LICENSE.htmx.txt": "text/plain", "LICENSE.uPlot.txt": "text/plain"} {
		if rec := get("/x/assets/" + name); rec.Code != http.StatusOK || !strings.HasPrefix(rec.Header().Get("Content-Type"), kind) ||
			rec.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
		}
	}
	pages := ui.Parse(fstest.MapFS{"one.html": {Data: []byte(`{{define "content"}}{{end}}`)}}, nil)
	rec := httptest.NewRecorder()
	if err := pages.Render(rec, 200, "one", ui.Frame{Base: "/x"}); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(rec.Body.String(), `<link rel="stylesheet" href="`)
	path, _, _ := strings.Cut(after, `"`)
	if cache := get(path).Header().Get("Cache-Control"); !strings.Contains(cache, "immutable") {
		t.Errorf("%s is cached by %q", path, cache)
	}
	for _, path := range []string{"/x/assets/none.js", "/x/assets/..%2fui.go", "/x/assets/"} {
		if rec := get(path); rec.Code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, rec.Code)
		}
	}
}

func TestFigures(t *testing.T) {
	for m, want := range map[domain.Money]string{0: "$0.00", 9_750_000: "$9.75", 1: "$0.000001", -500_000: "−$0.50",
		1_234_567_800_000: "$1,234,567.80", 100 * domain.Dollar: "$100.00"} {
		if got := ui.USD(m); got != want {
			t.Errorf("%d is %s, want %s", m, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 1_500_000: "1.5 MB", 10_000_000_000: "10 GB",
		2_345_000_000_000: "2.35 TB"} {
		if got := ui.Bytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	start := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{0: "over", time.Second: "less than a minute", 90 * time.Second: "1 min",
		90 * time.Minute: "1 h 30 min", 49 * time.Hour: "2 d 1 h"} {
		if got := ui.Until(start, start.Add(d)); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	if got := ui.When(start); got != `<time datetime="2026-05-15T12:00:00Z">2026-05-15 12:00:00 UTC</time>` || ui.When(time.Time{}) != "–" {
		t.Errorf("the time is %s", got)
	}
}
