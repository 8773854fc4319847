package httpapi_test

import (
	"net/netip"
	"testing"

	"agentproxy/adapters/exitfacts"
	"agentproxy/domain/account"
	"agentproxy/domain/exit"
)

// What was measured of an exit is shown where the exit is, and null until then; a call that only reads measures within
// the bounds of check, and makes no worker.
func TestWhatWasMeasuredOfExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	a := w.register("Measured")
	reader := w.token(a, account.SessionsRead)
	as := bearer(reader)
	dynamic := w.local(a)
	static := "/v1/sessions/" + w.do("POST", "/v1/sessions", `{"type":"static","config":{"product_no":"sta_sync","quantity":2,"duration_days":30,"country":"DE"}}`,
		a.as).want(201).str("data.session_id")
	w.do("POST", dynamic+"/workers", `{"count":2}`, a.as).want(201)

	// Without sources nothing is kept, and the place is unknown.
	r := w.do("GET", dynamic+"/exit?worker=w1", "", as).want(200)
	if r.str("data.ip") != "203.0.113.1" || r.at("data.country") != nil || r.at("data.agreed") != nil || r.at("data.listed") != nil ||
		r.at("data.asn") != nil || r.at("data.risk") != nil || r.str("data.network_type") != "unknown" {
		t.Errorf("without sources: %s", r.body)
	}
	if r := w.do("GET", dynamic+"/workers/w1", "", as).want(200); r.at("data.exit") != nil {
		t.Errorf("without sources a worker has facts: %s", r.body)
	}

	w.facts.Replace([]exitfacts.Source{{File: func(netip.Addr) exit.Known { return exit.Known{Country: "LT", Network: exit.Hosting} }}})
	if r := w.do("GET", static, "", as).want(200); r.at("data.ip_list.0.exit") != nil {
		t.Errorf("before a measurement: %s", r.body)
	}
	r = w.do("GET", static+"/exit", "", as).want(200)
	if r.str("data.country") != "LT" || r.str("data.declared_country") != "DE" || r.at("data.agreed") != false || r.num("data.risk") != 30 {
		t.Errorf("measured: %s", r.body)
	}
	r = w.do("GET", static, "", as).want(200)
	if r.str("data.ip_list.0.exit.country") != "LT" || r.str("data.ip_list.0.country") != "DE" || r.at("data.ip_list.1.exit") != nil {
		t.Errorf("the addresses: %s", r.body)
	}
	w.do("GET", dynamic+"/exit?worker=unknown", "", as).refused(404, "WORKER_NOT_FOUND")
	w.do("GET", static+"/exit?worker=w1", "", as).refused(400, "INVALID_REQUEST")
	w.do("GET", dynamic+"/exit?worker=w1", "", as).want(200)
	if r := w.do("GET", dynamic+"/workers", "", as).want(200); r.str("data.items.0.exit.country") != "LT" || r.at("data.items.1.exit") != nil {
		t.Errorf("the workers: %s", r.body)
	}

	// What is known is read as often as anything; what is not is measured ten times a minute.
	for range 20 {
		w.do("GET", static+"/exit", "", as).want(200)
	}
	for range 7 {
		w.do("POST", dynamic+"/check", "", a.as).want(200)
	}
	w.do("GET", dynamic+"/exit?worker=w2", "", as).refused(429, "RATE_LIMIT_EXCEEDED")
	w.do("GET", static+"/exit", "", as).want(200)
	other := w.register("Other")
	w.do("GET", static+"/exit", "", other.as).refused(404, "SESSION_NOT_FOUND")
	w.do("DELETE", static, "", a.as).want(200)
	w.do("GET", static+"/exit", "", as).refused(410, "SESSION_EXPIRED")
}
