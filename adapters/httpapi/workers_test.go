package httpapi_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// crowded is a service that sells dyn_local, whose sessions carry workers on n exits of this host.
func crowded(t testing.TB, n int) options {
	t.Helper()
	exits := make([]embedded.Exit, 2*n) // half of a pool is for static sessions
	for i := range exits {
		exits[i].Addr = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
	}
	local, err := embedded.New(embedded.Config{Everywhere: true, Exits: exits, Usable: func(netip.Addr) bool { return true }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return options{more: []ports.Provider{local}, sell: []catalog.Product{product("dyn_local", session.Dynamic, false, "embedded")}}
}

// local buys a session that carries workers, and returns its path.
func (w *world) local(a agent) string {
	w.t.Helper()
	return "/v1/sessions/" + w.do("POST", "/v1/sessions", body("dyn_local"), a.as).want(201).str("data.session_id")
}

func goldenWorkers(t *testing.T) {
	w := newWorld(t, crowded(t, 5))
	a := w.register("Golden")
	at := w.local(a)
	w.do("POST", at+"/workers", `{"names":["w07","b"],"country":"de","ttl_seconds":600,"strict":true,"max_bytes":1000000}`, a.as).
		want(201).golden("make-workers")
	w.do("GET", at+"/workers?page_size=1", "", a.as).want(200).golden("list-workers")
	w.do("POST", at+"/workers/b/rotate", `{"reason":"http_403"}`, a.as, key("one")).want(200).golden("rotate-worker")
	w.do("GET", at+"/workers/w07", "", a.as).want(200).golden("get-worker")
	w.do("DELETE", at+"/workers/b", "", a.as).want(200).golden("delete-worker")
	w.do("GET", at+"/exit?worker=w07", "", a.as).want(200).golden("get-session-exit")
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	a := w.register("Fleet")
	at := w.local(a)
	id := strings.TrimPrefix(at, "/v1/sessions/")
	many := at + "/workers"

	made := w.do("POST", many, `{"count":3,"unique_exits":true}`, a.as).want(201)
	exits := map[string]bool{}
	for i := range 3 {
		item := fmt.Sprintf("data.items.%d.", i)
		name := fmt.Sprintf("w%d", i+1)
		exits[made.str(item+"exit_ip")] = true
		if made.str(item+"name") != name || !strings.HasSuffix(made.str(item+"proxy.username"), "-session-"+name) {
			t.Errorf("%s is not %s: %s", item, name, made.body)
		}
	}
	if len(exits) != 3 || exits[""] {
		t.Errorf("the exits of three are %v", exits)
	}
	if again := w.do("POST", many, `{"count":3,"unique_exits":true}`, a.as).want(200); text(again.at("data")) != text(made.at("data")) {
		t.Errorf("read again: %s", again.body)
	}
	short := w.do("POST", many, `{"count":6,"unique_exits":true}`, a.as).refused(409, "PRODUCT_OUT_OF_STOCK")
	if short.num("error.details.available") != 5 || w.do("GET", many, "", a.as).want(200).num("data.pagination.total") != 3 {
		t.Errorf("six on five exits: %s", short.body)
	}

	before := w.do("GET", many+"/w2", "", a.as).want(200)
	for range 2 { // the second is the first again
		moved := w.do("POST", many+"/w2/rotate", `{"reason":"block"}`, a.as, key("move")).want(200)
		if moved.num("data.rotations") != 1 || moved.str("data.exit_ip") == before.str("data.exit_ip") {
			t.Errorf("rotated: %s", moved.body)
		}
	}
	w.do("POST", at+"/report-event", `{"worker":"w1","event_type":"success"}`, a.as).want(200)
	for range 10 {
		w.do("POST", "/v1/telemetry/batch", `{"events":[{"session_id":"`+id+`","worker":"w3","event_type":"block"}]}`, a.as).want(200)
	}
	events := w.do("GET", at+"/events", "", a.as).want(200)
	if events.str("data.items.0.worker") != "w3" || events.str("data.items.10.worker") != "w1" {
		t.Errorf("the feed: %s", events.body)
	}
	for _, path := range []string{"data.health.workers", "data.workers"} {
		from := map[string]string{"data.health.workers": at, "data.workers": at + "/health"}[path]
		if r := w.do("GET", from, "", a.as).want(200); r.num(path+".total") != 3 || r.num(path+".at_risk") != 1 {
			t.Errorf("%s: %s", from, r.body)
		}
	}
	if r := w.do("GET", many+"/w3", "", a.as).want(200); r.str("data.health.risk_level") != "critical" {
		t.Errorf("a blocked worker: %s", r.body)
	}
	w.do("DELETE", many+"/w3", "", a.as).want(200)
	w.do("GET", many+"/w3", "", a.as).refused(404, "WORKER_NOT_FOUND")
	if r := w.do("GET", many+"?status=active", "", a.as).want(200); r.num("data.pagination.total") != 2 {
		t.Errorf("after one was removed: %s", r.body)
	}
	if r := w.do("GET", many+"?status=exhausted", "", a.as).want(200); r.num("data.pagination.total") != 0 {
		t.Errorf("exhausted are %s", r.body)
	}
	products := w.do("GET", "/v1/products?page_size=100", "", a.as).want(200)
	for i, p := range products.at("data.items").([]any) {
		item := fmt.Sprintf("data.items.%d.", i)
		local := p.(map[string]any)["product_no"] == "dyn_local"
		if products.at(item+"workers") != local || (products.num(item+"unique_exits") == 5) != local {
			t.Errorf("the catalogue shows %v", p)
		}
	}
}

func TestRefusedWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 5))
	a, b := w.register("Fleet"), w.register("Other")
	at := w.local(a)
	many := at + "/workers"
	w.do("POST", many, `{"names":["a"],"country":"de","ttl_seconds":60,"max_bytes":5}`, a.as).want(201)
	remote := "/v1/sessions/" + w.do("POST", "/v1/sessions", oneGB, a.as).want(201).str("data.session_id") + "/workers"
	for _, tc := range []struct {
		method, path, body string
		status             int
		code, field        string
	}{
		{"POST", many, `{}`, 400, "INVALID_REQUEST", "names"},
		{"POST", many, `{"count":1,"names":["x"]}`, 400, "INVALID_REQUEST", "names"},
		{"POST", many, `{"count":0}`, 400, "INVALID_REQUEST", "count"},
		{"POST", many, `{"count":1001}`, 400, "INVALID_REQUEST", "count"},
		{"POST", many, `{"count":1.5}`, 400, "INVALID_REQUEST", "count"},
		{"POST", many, `{"names":["x-y"]}`, 400, "INVALID_REQUEST", "names[0]"},
		{"POST", many, `{"names":["x","x"]}`, 400, "INVALID_REQUEST", "names[1]"},
		{"POST", many, `{"count":2,"ttl_seconds":9}`, 400, "INVALID_REQUEST", "ttl_seconds"},
		{"POST", many, `{"count":2,"ttl_seconds":86401}`, 400, "INVALID_REQUEST", "ttl_seconds"},
		{"POST", many, `{"count":2,"max_bytes":0}`, 400, "INVALID_REQUEST", "max_bytes"},
		{"POST", many, `{"count":2,"city":"berlin"}`, 400, "INVALID_REQUEST", "country"},
		{"POST", many, `{"count":2,"country":"zz"}`, 400, "INVALID_REQUEST", "country"},
		{"POST", many, `{"names":["n","a"],"country":"us"}`, 409, "WORKER_DIFFERS", ""},
		{"POST", many, `{"names":["a"],"max_bytes":6}`, 409, "WORKER_DIFFERS", ""},
		{"POST", many, `{"count":1000}`, 429, "WORKER_LIMIT_REACHED", ""},
		{"POST", remote, `{"count":1}`, 400, "INVALID_REQUEST", ""},
		{"GET", many + "/n", "", 404, "WORKER_NOT_FOUND", ""},
		{"GET", many + "/A", "", 404, "WORKER_NOT_FOUND", ""},
		{"GET", many + "/x%2dy", "", 404, "WORKER_NOT_FOUND", ""},
		{"GET", many + "?status=gone", "", 400, "INVALID_REQUEST", "status"},
		{"POST", many + "/n/rotate", "", 404, "WORKER_NOT_FOUND", ""},
		{"POST", many + "/a/rotate", `{"reason":"tired"}`, 400, "INVALID_REQUEST", "reason"},
		{"DELETE", many + "/n", "", 404, "WORKER_NOT_FOUND", ""},
		{"POST", at + "/report-event", `{"worker":"n","event_type":"block"}`, 400, "INVALID_REQUEST", "worker"},
	} {
		r := w.do(tc.method, tc.path, tc.body, a.as).refused(tc.status, tc.code)
		if tc.field != "" && r.str("error.details.fields.0.field") != tc.field {
			t.Errorf("%s %s %s: %s", tc.method, tc.path, tc.body, r.body)
		}
	}
	for _, call := range [][2]string{{"GET", ""}, {"GET", "/a"}, {"DELETE", "/a"}, {"POST", "/a/rotate"}} {
		w.do(call[0], many+call[1], "", b.as).refused(404, "SESSION_NOT_FOUND")
	}
	if r := w.do("GET", many, "", a.as).want(200); r.num("data.pagination.total") != 1 || r.num("data.items.0.rotations") != 0 {
		t.Errorf("refused calls changed something: %s", r.body)
	}
	w.do("POST", at+"/terminate", "", a.as).want(200)
	w.do("POST", many, `{"count":1}`, a.as).refused(410, "SESSION_EXPIRED")
	w.do("POST", many+"/a/rotate", "", a.as).refused(410, "SESSION_EXPIRED")
}

// A worker has nowhere to go when the pool has one exit.
func TestAWorkerWithoutAnotherExit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, crowded(t, 1))
	a := w.register("Fleet")
	many := w.local(a) + "/workers"
	w.do("POST", many, `{"count":1}`, a.as).want(201)
	w.do("POST", many+"/w1/rotate", "", a.as).refused(409, "PRODUCT_OUT_OF_STOCK")
}
