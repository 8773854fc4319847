package httpapi_test

import (
	"strings"
	"testing"
)

// TestAWrongMethodOrPathIsExplained checks what a program reads that sees no header.
func TestAWrongMethodOrPathIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	if r := w.do("PUT", "/v1/sessions", ``).refused(405, "METHOD_NOT_ALLOWED"); !strings.Contains(string(r.body), `"allow":["GET","HEAD","POST"]`) {
		t.Errorf("a wrong method: %s", r.body)
	}
	if r := w.do("GET", "/v1/nothing", ``).refused(404, "NOT_FOUND"); !strings.Contains(string(r.body), "/llms.txt") {
		t.Errorf("a wrong path: %s", r.body)
	}
}
