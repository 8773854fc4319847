package httpapi_test

import (
	"strings"
	"testing"
)

// TestEndingCanBeTriedFirst checks what a dry run of ending a session answers, and what ending fixed IPs gives up.
func TestEndingCanBeTriedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	var a agent
	for body, want := range map[string]string{
		`{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":1}`:                                `"balance_after":10,"refunded":0.5,"forfeited":0}`,
		`{"session_type":"static","product_no":"sta_sync","quantity":1,"duration":30,"country_code":"US"}`: `"refunded":0,"forfeited":1}`,
	} {
		a = w.register("agent") // with a balance of its own
		id := w.do("POST", "/v1/sessions", body, a.as).want(201).str("data.session_id")
		for _, call := range [][2]string{{"POST", "/terminate?dry_run=true"}, {"DELETE", "?dry_run=true"}} {
			r := w.do(call[0], "/v1/sessions/"+id+call[1], "", a.as).want(200)
			if !strings.Contains(string(r.body), `"data":{"dry_run":true,"cost":0,"currency":"USD",`) || !strings.Contains(string(r.body), want) {
				t.Errorf("%s %s answers %s", call[0], body, r.body)
			}
		}
		if r := w.do("GET", "/v1/sessions/"+id, "", a.as).want(200); r.str("data.status") != "active" || r.num("data.cost.forfeited") != 0 {
			t.Errorf("a dry run has made it %s", r.body)
		}
		for _, query := range []string{"?dry_run=", "?dry_run=1", "?dryrun=true"} {
			w.do("DELETE", "/v1/sessions/"+id+query, "", a.as).refused(400, "INVALID_REQUEST")
		}
		gives := map[bool]float64{true: 1}[strings.Contains(body, "static")]
		if r := w.do("DELETE", "/v1/sessions/"+id, "", a.as).want(200); r.num("data.cost.forfeited") != gives {
			t.Errorf("ending it answers %s", r.body)
		}
		w.do("DELETE", "/v1/sessions/"+id+"?dry_run=true", "", a.as).want(200)
	}
	w.do("DELETE", "/v1/sessions/sess_none?dry_run=true", "", a.as).refused(404, "SESSION_NOT_FOUND")
}

// TestASummaryHasNoPassword lists sessions as a model may read them.
func TestASummaryHasNoPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	for _, body := range []string{`{"session_type":"dynamic","product_no":"dyn_sync"}`,
		`{"session_type":"static","product_no":"sta_sync","quantity":2,"duration":30,"country_code":"US"}`} {
		w.do("POST", "/v1/sessions", body, a.as).want(201)
	}
	for query, has := range map[string]bool{"": true, "?view=full": true, "?view=summary": false} {
		r := w.do("GET", "/v1/sessions"+query, "", a.as).want(200)
		if strings.Contains(string(r.body), `"password"`) != has || !strings.Contains(string(r.body), `"status":"active"`) {
			t.Errorf("%q answers %s", query, r.body)
		}
	}
	w.do("GET", "/v1/sessions?view=short", "", a.as).refused(400, "INVALID_REQUEST")
}
