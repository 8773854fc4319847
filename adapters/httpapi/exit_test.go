package httpapi_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/adapters/exitfacts"
	"agentproxy/app/exitgate"
	"agentproxy/domain/account"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
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
	second := w.do("GET", static, "", as).want(200).str("data.ip_list.1.ip")
	for path, body := range map[string]string{static: `{"ip":"192.0.2.77"}`, dynamic: `{"ip":"` + second + `"}`, dynamic + " ": `{"worker":"no-name"}`} {
		r := w.do("POST", strings.TrimSpace(path)+"/check", body, a.as).refused(400, "INVALID_REQUEST")
		if got := r.str("error.details.fields.0.field"); !strings.Contains(body, `"`+got+`"`) {
			t.Errorf("%s: field %q", body, got)
		}
	}
	w.do("POST", dynamic+"/check?worker=w1", `{"worker":"w2"}`, a.as).refused(400, "INVALID_REQUEST") // counts not
	w.do("POST", static+"/check", `{"ip":"`+second+`"}`, a.as).want(200)
	w.do("POST", dynamic+"/check?worker=w1", "", a.as).want(200) // as clients of before send it
	for range 2 {
		w.do("POST", dynamic+"/check", "", a.as).want(200)
	}
	w.do("GET", dynamic+"/exit?worker=w2", "", as).refused(429, "RATE_LIMIT_EXCEEDED")
	w.do("GET", static+"/exit", "", as).want(200)
	other := w.register("Other")
	w.do("GET", static+"/exit", "", other.as).refused(404, "SESSION_NOT_FOUND")
	w.do("DELETE", static, "", a.as).want(200)
	w.do("GET", static+"/exit", "", as).refused(410, "SESSION_EXPIRED")
}

// seesItself is an echo that sees each exit of the host as itself.
type seesItself struct{}

func (seesItself) ProbeExit(_ context.Context, a netip.Addr) (netip.Addr, error) { return a, nil }
func (seesItself) ProbeThrough(context.Context, procurement.Endpoint) (netip.Addr, error) {
	return netip.Addr{}, ports.ErrProvider
}

// A rule that is malformed, out of bounds or not measurable is refused by its field, and a refusal because no exit meets
// one has no credential and no price.
func TestRequire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	w.driver.Gate = exitgate.New(seesItself{}, w.facts, w.clock)
	w.facts.Replace([]exitfacts.Source{{Has: exit.Fields{Network: true}, File: func(a netip.Addr) exit.Known {
		if a == netip.MustParseAddr("10.0.0.3") {
			return exit.Known{Network: exit.Residential}
		}
		return exit.Known{Network: exit.Hosting}
	}}})
	a := w.register("Picky")
	create := func(product, require string) *answer {
		return w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"`+product+`"},"require":`+require+`}`, a.as)
	}
	for require, field := range map[string]string{
		`{"attempts":0}`:                        "require.attempts",
		`{"attempts":11}`:                       "require.attempts",
		`{"attempts":1.5}`:                      "require.attempts",
		`{"max_risk":101}`:                      "require.max_risk",
		`{"max_risk":-1}`:                       "require.max_risk",
		`{"max_risk":0.5}`:                      "require.max_risk",
		`{"network_types":["unknown"]}`:         "require.network_types[0]",
		`{"asns":["AS7922x"]}`:                  "require.asns[0]",
		`{"asns":[7922]}`:                       "require.asns",
		`{"agreed":true}`:                       "require.agreed",
		`{"not_in":["10.0.0.1/8"]}`:             "require.not_in[0]",
		`{"not_in":["10.0.0.0"]}`:               "require.not_in[0]",
		`{"risk":5}`:                            "require.risk",
		`{"network_types":["hosting"],"asn":1}`: "require.asn",
	} {
		r := create("dyn_local", require).refused(400, "INVALID_REQUEST")
		if got := r.str("error.details.fields.0.field"); got != field {
			t.Errorf("%s: field %q, want %q", require, got, field)
		}
	}
	if r := create("dyn_sync", `{"network_types":["residential"]}`).refused(400, "INVALID_REQUEST"); r.str("error.details.fields.0.field") != "require" {
		t.Errorf("a seller's product: %s", r.body)
	}
	r := create("dyn_local", `{"network_types":["mobile"],"max_risk":90}`).refused(409, "EXIT_QUALITY_NOT_MET")
	if strings.Contains(string(r.body), "full_url") || strings.Contains(string(r.body), "password") || r.num("error.details.tried") != 5 ||
		r.str("error.details.best.fails") != "network_types" || r.num("error.details.best.risk") != 0 {
		t.Errorf("no exit meets it: %s", r.body)
	}
	if r := w.do("GET", "/v1/sessions", "", a.as).want(200); r.num("data.pagination.total") != 0 {
		t.Errorf("a refused purchase left %s", r.body)
	}
	flat := w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_local","require":{"network_types":["residential"]}}`, a.as).want(201)
	at := "/v1/sessions/" + flat.str("data.session_id")
	w.do("POST", at+"/rotate", "", a.as).refused(409, "EXIT_QUALITY_NOT_MET")
	w.do("POST", at+"/rotate", `{"require":{"not_in":["10.0.0.3/32","10.0.0.0/31"]}}`, a.as).want(200)
	w.do("POST", at+"/rotate", `{"require":{}}`, a.as).want(200)
}

// A browser is configured with the place of its exit as it was measured.
func TestPassportOfABrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	a := w.register("Browser")
	at := w.local(a)
	w.do("POST", at+"/workers", `{"count":2}`, a.as).want(201)
	for query, field := range map[string]string{"client=curl": "passport", "client=playwright&workers=2": "passport",
		"client=playwright&country=DE": "passport"} {
		r := w.do("GET", at+"/connect?passport=true&"+query, "", a.as).refused(400, "INVALID_REQUEST")
		if got := r.str("error.details.fields.0.field"); got != field {
			t.Errorf("%s: field %q", query, got)
		}
	}
	w.do("GET", at+"/connect?passport=true&client=selenium&workers=w7", "", a.as).refused(404, "WORKER_NOT_FOUND")
	if r := w.do("GET", at+"/connect?passport=true&client=playwright", "", a.as).want(200); !strings.Contains(r.str("data.snippet"), "// time zone of the exit: not measured") {
		t.Errorf("without sources: %s", r.body)
	}
	for country, locale := range map[string]string{"LT": "lt-LT", "US": "en-US", "BR": "pt-BR", "CH": "de-CH", "JP": "ja-JP"} {
		w.facts.Replace([]exitfacts.Source{{File: func(netip.Addr) exit.Known { return exit.Known{Country: country, Timezone: "Europe/Vilnius"} }}})
		w.do("POST", at+"/check", `{"worker":"w1"}`, a.as).want(200)
		r := w.do("GET", at+"/connect?passport=true&client=playwright&workers=w1", "", a.as).want(200)
		if text := r.str("data.snippet"); !strings.Contains(text, "timezoneId: \"Europe/Vilnius\",\n  locale: \""+locale+"\",") {
			t.Errorf("%s: %s", country, text)
		}
	}
	if r := w.do("GET", at+"/connect?client=playwright&workers=w1", "", a.as).want(200); strings.Contains(r.str("data.snippet"), "timezoneId") {
		t.Errorf("without passport: %s", r.body)
	}
}
