package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLabelsAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	buy := func(more string) string {
		return w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":0.1}`+more+`}`, a.as).
			want(201).str("data.session_id")
	}
	first := buy(`,"labels":{"team":"prices","env":"prod"}`)
	second := w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":0.1,"country_code":"de","labels":{"team":"ads"}}`,
		a.as).want(201).str("data.session_id")
	third := buy("")
	ids := func(query string) (ids []string) {
		r := w.do("GET", "/v1/sessions?"+query, "", a.as).want(200)
		for i := range len(r.at("data.items").([]any)) {
			ids = append(ids, r.str(fmt.Sprintf("data.items.%d.session_id", i)))
		}
		return ids
	}
	for query, want := range map[string][]string{
		"label=team:prices": {first}, "label=team:ads": {second}, "label=team:none": nil, "country=de": {second}, "country=FR": nil,
		"created_from=2000-01-01&created_to=2100-01-01": {third, second, first}, "created_to=2000-01-01": nil,
	} {
		if got := ids(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{"label=team", "label=", "label=Team:x", "country=deu", "country=1", "created_from=yesterday", "created_from=",
		"created_from=2026-02-01&created_to=2026-01-01", "cursor=", "cursor=2", "cursor=c", "cursor=c-1", "cursor=c0", "cursor=cz&page=1", "cursor=cz_", "cursor=cz_0", "cursor=cz_-1", "cursor=cz_1_1", "labels=team:x"} {
		w.do("GET", "/v1/sessions?"+query, "", a.as).refused(400, "INVALID_REQUEST")
	}

	page := w.do("GET", "/v1/sessions?page_size=2", "", a.as).want(200)
	cursor := page.str("data.pagination.next_cursor")
	buy("")
	rest := w.do("GET", "/v1/sessions?page_size=2&cursor="+cursor, "", a.as).want(200)
	if got := rest.str("data.items.0.session_id"); got != first || rest.at("data.items.1") != nil || rest.at("data.pagination.next_cursor") != nil {
		t.Errorf("after two of three: %s", rest.body)
	}

	r := w.do("PATCH", "/v1/sessions/"+first, `{"labels":{"team":"ads"}}`, a.as).want(200)
	if r.str("data.labels.team") != "ads" || r.at("data.labels.env") != nil || !slices.Equal(ids("label=team:ads"), []string{second, first}) {
		t.Errorf("labels are replaced: %s", r.body)
	}
	w.do("PATCH", "/v1/sessions/"+first, `{}`, a.as).want(200)
	for _, body := range []string{`{"labels":{"Team":"x"}}`, `{"labels":{"team":"` + strings.Repeat("x", 65) + `"}}`, `{"labels":[]}`,
		`{"labels":{"team":1}}`, `{"lables":{}}`} {
		w.do("PATCH", "/v1/sessions/"+first, body, a.as).refused(400, "INVALID_REQUEST")
	}
	if got := w.do("GET", "/v1/sessions/"+first, "", a.as).want(200).str("data.labels.team"); got != "ads" {
		t.Errorf("after bad changes the label is %q", got)
	}
	w.do("POST", "/v1/sessions", `{"type":"dynamic","labels":{"A":"x"},"config":{"product_no":"dyn_sync"}}`, a.as).refused(400, "INVALID_REQUEST")
	w.do("POST", "/v1/sessions/"+first+"/terminate", "", a.as).want(200)
	if r := w.do("PATCH", "/v1/sessions/"+first, `{"labels":{}}`, a.as).want(200); len(r.at("data.labels").(map[string]any)) != 0 {
		t.Errorf("labels are removed after the end: %s", r.body)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	r := w.do("POST", "/v1/sessions", `{"type":"dynamic","allowed_ips":["192.0.2.9","::ffff:198.51.100.0/120"],"config":{"product_no":"dyn_sync","traffic_gb":0.1}}`,
		a.as).want(201)
	id, at := r.str("data.session_id"), "/v1/sessions/"+r.str("data.session_id")
	if got := text(r.at("data.allowed_ips")); got != `["192.0.2.9/32","198.51.100.0/24"]` {
		t.Errorf("bought with %s", got)
	}
	for _, body := range []string{`{"allowed_ips":["here"]}`, `{"allowed_ips":"192.0.2.1"}`, `{"allowed_ips":[1]}`, `{"allowed_ip":[]}`,
		`{"allowed_ips":[` + strings.Repeat(`"192.0.2.1",`, 32) + `"192.0.2.2"]}`} {
		w.do("PATCH", at, body, a.as).refused(400, "INVALID_REQUEST")
	}
	if got := text(w.do("GET", at, "", a.as).want(200).at("data.allowed_ips")); got != `["192.0.2.9/32","198.51.100.0/24"]` {
		t.Errorf("after bad changes %s", got)
	}
	w.do("POST", "/v1/sessions", `{"type":"dynamic","allowed_ips":["here"],"config":{"product_no":"dyn_sync"}}`, a.as).refused(400, "INVALID_REQUEST")
	if got := text(w.do("PATCH", at, `{"allowed_ips":[]}`, a.as).want(200).at("data.allowed_ips")); got != "[]" {
		t.Errorf("after the last change %s", got)
	}

	before := r.str("data.proxy.password")
	first := w.do("POST", at+"/rotate-password", "", a.as, header("Idempotency-Key", "p1")).want(200)
	again := w.do("POST", at+"/rotate-password", "", a.as, header("Idempotency-Key", "p1")).want(200)
	after := first.str("data.proxy.password")
	if after == before || again.str("data.proxy.password") != after || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("passwords %q, %q, %q", before, after, again.str("data.proxy.password"))
	}
	if full := first.str("data.proxy.full_url"); !strings.Contains(full, ":"+after+"@") {
		t.Errorf("full_url is %q", full)
	}
	w.do("POST", at+"/rotate", `{"close_connections":true}`, a.as).want(200)
	w.do("POST", at+"/rotate-password", `{"close_connections":1}`, a.as).refused(400, "INVALID_REQUEST")
	if listed := w.do("GET", at+"/events", "", a.as).want(200); !strings.Contains(string(listed.body), `"password_replaced"`) {
		t.Errorf("the feed of %s is %s", id, listed.body)
	}
	w.do("POST", at+"/terminate", "", a.as).want(200)
	w.do("POST", at+"/rotate-password", "", a.as).refused(410, "SESSION_EXPIRED")
	w.do("PATCH", at, `{"allowed_ips":[]}`, a.as).refused(410, "SESSION_EXPIRED")
}
