package httpapi_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestDocsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	get := func(path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		return rec
	}
	page := get("/docs")
	if page.Code != 200 || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %s", page.Code, page.Header())
	}
	t.Run("loads nothing from elsewhere", func(t *testing.T) {
		csp := page.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "http") ||
			strings.Contains(csp, "*") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("policy %s", csp)
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page.Body.String(), -1) {
			if !strings.HasPrefix(m[1], "/") || strings.HasPrefix(m[1], "//") {
				t.Errorf("the page loads %s", m[1])
			} else if rec := get(m[1]); rec.Code != 200 {
				t.Errorf("%s: %d", m[1], rec.Code)
			}
		}
		if strings.Contains(page.Body.String(), "<script>") || strings.Contains(page.Body.String(), "style=") {
			t.Error("the page has inline code, which its policy forbids")
		}
	})
	t.Run("has no more than 500 lines", func(t *testing.T) {
		files, _ := filepath.Glob("docs/*")
		lines := 0
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(b), "\n")
		}
		if lines == 0 || lines >= 500 {
			t.Errorf("%d lines", lines)
		}
	})
	t.Run("never puts text in as markup", func(t *testing.T) {
		script := get("/docs/docs.js")
		if script.Code != 200 || script.Body.Len() == 0 {
			t.Fatalf("the script: %d", script.Code)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("} {
			if strings.Contains(script.Body.String(), bad) {
				t.Errorf("docs.js uses %s", bad)
			}
		}
	})
}
