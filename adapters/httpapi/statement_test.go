package httpapi_test

import (
	"strings"
	"testing"
)

func TestStatementForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	for range 2 {
		w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":0.1}`, a.as).want(201)
	}
	path := "/v1/billing/statements/" + w.clock.Now().Format("2006-01") + "?page_size=1"
	r := w.do("GET", path, "", a.as).want(200)
	if r.num("data.opening_balance") != 0 || r.num("data.by_type.hold") != -0.1 || r.num("data.closing_balance") != 9.9 ||
		r.num("data.items.0.held") != 0.05 || r.num("data.pagination.total") != 2 {
		t.Errorf("the statement is %s", r.body)
	}
	csv := w.do("GET", path, "", a.as, header("Accept", "text/csv"))
	if !strings.HasPrefix(string(csv.body), "session_id,type,product_no,held,charged,released,refunded,amount\r\n") ||
		!strings.Contains(csv.header.Get("Link"), `rel="next"`) {
		t.Errorf("as CSV with Link %q: %s", csv.header.Get("Link"), csv.body)
	}
	page := w.do("GET", path, "", a.as, header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"))
	for _, want := range []string{"<h1>Statement ", "Closing balance", "9.9", r.str("data.items.0.session_id"), "More sessions"} {
		if !strings.Contains(string(page.body), want) {
			t.Errorf("the page has no %q:\n%s", want, page.body)
		}
	}
	if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(page.header.Get("Cache-Control"), "no-store") {
		t.Errorf("headers of the page: %v", page.header)
	}
	// What is printed or filed has all sessions; here are more than one page of JSON.
	for range 20 {
		w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":0.1}`, a.as).want(201)
	}
	static := w.do("POST", "/v1/sessions", `{"session_type":"static","product_no":"sta_sync","quantity":1}`, a.as).want(201)
	whole := strings.TrimSuffix(path, "?page_size=1")
	if r := w.do("GET", whole, "", a.as).want(200); r.num("data.spent") != 1 || r.num("data.pagination.total") != 23 {
		t.Errorf("the statement is %s", r.body)
	}
	filed := w.do("GET", whole, "", a.as, header("Accept", "text/csv"))
	if n := strings.Count(string(filed.body), "\r\n"); n != 24 || filed.header.Get("Link") != "" {
		t.Errorf("as CSV it has %d lines, Link %q", n, filed.header.Get("Link"))
	}
	printed := string(w.do("GET", whole, "", a.as, header("Accept", "text/html")).body)
	if !strings.Contains(printed, "<title>Proxies of Anna: statement ") {
		t.Errorf("the statement does not name the shop:\n%s", printed)
	}
	for _, want := range []string{"Spent: 1<", "agent", static.str("data.session_id")} {
		if !strings.Contains(printed, want) || strings.Count(printed, "sess_") != 23 || strings.Contains(printed, "More sessions") {
			t.Errorf("the page to print has no %q, or not all sessions:\n%s", want, printed)
		}
	}
	for _, month := range []string{"2020-01", "9000-01", "2026-13", "x", "%20"} {
		w.do("GET", "/v1/billing/statements/"+month, "", a.as).refused(400, "INVALID_REQUEST")
	}
}
