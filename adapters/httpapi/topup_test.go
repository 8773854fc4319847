package httpapi_test

import (
	"testing"
)

func TestTopUpOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	id := w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":0.1}`, a.as).
		want(201).str("data.session_id")
	path := "/v1/sessions/" + id
	first := w.do("POST", path+"/traffic", `{"traffic_gb":0.2}`, a.as, header("Idempotency-Key", "k")).want(200)
	again := w.do("POST", path+"/traffic", `{"traffic_gb":0.2}`, a.as, header("Idempotency-Key", "k")).want(200)
	if first.num("data.traffic_gb") != 0.3 || again.num("data.traffic_gb") != 0.3 || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("first %s, again %s", first.body, again.body)
	}
	w.do("POST", path+"/traffic", `{"traffic_gb":0.3}`, a.as, header("Idempotency-Key", "k")).refused(409, "IDEMPOTENCY_CONFLICT")
	w.do("POST", path+"/traffic", `{"traffic_gb":0.2,"max_cost":0.01}`, a.as).refused(409, "PRICE_MISMATCH")
	w.do("POST", path+"/traffic", `{"traffic_gb":900}`, a.as).refused(402, "INSUFFICIENT_BALANCE")
	for _, body := range []string{``, `{}`, `{"traffic_gb":null}`, `{"traffic_gb":"1"}`, `{"traffic_gb":-1}`, `{"traffic_gb":0.00001}`, `{"traffic-gb":1}`} {
		w.do("POST", path+"/traffic", body, a.as).refused(400, "INVALID_REQUEST")
	}

	r := w.do("PATCH", path, `{"auto_top_up":{"below_percent":20,"add_gb":0.1,"max_per_day":2}}`, a.as).want(200)
	if r.num("data.auto_top_up.below_percent") != 20 || r.num("data.auto_top_up.add_gb") != 0.1 || r.num("data.auto_top_up.max_per_day") != 2 {
		t.Errorf("set: %s", r.body)
	}
	for _, body := range []string{`{"auto_top_up":{}}`, `{"auto_top_up":[]}`, `{"auto_top_up":{"below_percent":0,"add_gb":0.1,"max_per_day":2}}`,
		`{"auto_top_up":{"below_percent":1.5,"add_gb":0.1,"max_per_day":2}}`, `{"auto_top_up":{"below_percent":20,"add_gb":"1","max_per_day":2}}`,
		`{"auto_top_up":{"below_percent":20,"add_gb":0.1,"max_per_day":null}}`} {
		w.do("PATCH", path, body, a.as).refused(400, "INVALID_REQUEST")
	}
	if r := w.do("PATCH", path, `{"labels":{}}`, a.as).want(200); r.num("data.auto_top_up.below_percent") != 20 {
		t.Errorf("another change: %s", r.body)
	}
	if r := w.do("PATCH", path, `{"auto_top_up":null}`, a.as).want(200); r.at("data.auto_top_up") != nil {
		t.Errorf("turned off: %s", r.body)
	}
}
