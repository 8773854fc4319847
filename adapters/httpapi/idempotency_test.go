package httpapi_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/test/fake"
)

const oneGB = `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1}}`

func key(k string) func(r *http.Request) { return header("Idempotency-Key", k) }

func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, b := w.register("First"), w.register("Second")
	first := w.do("POST", "/v1/sessions", oneGB, a.as, key("k1")).want(201)
	id := first.str("data.session_id")

	t.Run("the same call again answers the same session and charges once", func(t *testing.T) {
		for _, same := range []string{
			oneGB, " { \"config\" : {\n\"traffic_gb\":1,\t\"product_no\":\"dyn_sync\"}, \"type\":\"dynamic\" } ",
			`{"t\u0079pe":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1}}`,
		} {
			r := w.do("POST", "/v1/sessions", same, a.as, key("k1")).want(201)
			if r.str("data.session_id") != id || r.header.Get("Idempotency-Replayed") != "true" ||
				r.str("meta.request_id") == first.str("meta.request_id") {
				t.Errorf("%s: %s %v", same, r.body, r.header)
			}
		}
		if first.header.Get("Idempotency-Replayed") != "" {
			t.Error("the first answer is marked as a repetition")
		}
		if got := w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance"); got != 9.5 {
			t.Errorf("balance %v, want 9.5", got)
		}
	})
	t.Run("the key for another body is a conflict", func(t *testing.T) {
		for _, other := range []string{
			strings.Replace(oneGB, ":1}", ":2}", 1), strings.Replace(oneGB, "dyn_sync", "dyn_async", 1), `{"type":"dynamic","config":{"product_no":"dyn_sync"}}`,
		} {
			if r := w.do("POST", "/v1/sessions", other, a.as, key("k1")).refused(409, "IDEMPOTENCY_CONFLICT"); r.at(
				"error.retryable",
			) != false {
				t.Error("retryable")
			}
		}
	})
	t.Run("another path or agent is another key", func(t *testing.T) {
		w.do("POST", "/v1/sessions/"+id+"/rotate", "", a.as, key("k1")).want(200)
		if got := w.do("POST", "/v1/sessions", oneGB, b.as, key("k1")).want(201).str("data.session_id"); got == id {
			t.Error("two agents share a session")
		}
	})
	t.Run("a replay shows the session as it is now", func(t *testing.T) {
		before := w.do("GET", "/v1/sessions/"+id, "", a.as).num("data.rotation.count")
		r := w.do("POST", "/v1/sessions/"+id+"/rotate", "{}", a.as, key("k1")).want(200)
		if r.num("data.rotation.count") != before || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("rotated again: %s", r.body)
		}
		w.do("DELETE", "/v1/sessions/"+id, "", a.as).want(200)
		r = w.do("POST", "/v1/sessions", oneGB, a.as, key("k1")).want(201)
		if r.str("data.status") != "terminated" || r.at("data.proxy") != nil {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("a refused call keeps no key", func(t *testing.T) {
		big := strings.Replace(oneGB, ":1}", ":999}", 1)
		w.do("POST", "/v1/sessions", big, a.as, key("k2")).refused(402, "INSUFFICIENT_BALANCE")
		w.do("POST", "/v1/sessions", oneGB, a.as, key("k2")).want(201)
	})
	t.Run("a dry run ignores the key", func(t *testing.T) {
		w.do("POST", "/v1/sessions?dry_run=true", oneGB, a.as, key("k3")).want(200)
		w.do("POST", "/v1/sessions", strings.Replace(oneGB, ":1}", ":2}", 1), a.as, key("k3")).want(201)
	})
	t.Run("a key lasts 24 hours", func(t *testing.T) {
		w.clock.Advance(24*time.Hour + time.Second)
		if got := w.do("POST", "/v1/sessions", oneGB, a.as, key("k1")).want(201); got.str("data.session_id") == id ||
			got.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s", got.body)
		}
	})
	t.Run("a malformed key is 400", func(t *testing.T) {
		for _, bad := range []string{"", strings.Repeat("k", 256), "a\tb", "é", "a\x7f"} {
			w.do("POST", "/v1/sessions", oneGB, a.as, key(bad)).refused(400, "INVALID_REQUEST")
		}
		w.do("POST", "/v1/sessions", oneGB, a.as, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }).refused(400, "INVALID_REQUEST")
		for _, good := range []string{"k", strings.Repeat("k", 255), `"quoted"`, "a b~!"} {
			w.do("POST", "/v1/sessions", oneGB, b.as, key(good)).want(201)
		}
	})
}

func TestParallelCallsWithOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.provider.SetInProcess(false)
	w.provider.Always(fake.Provision, fake.Step{Delay: 30 * time.Millisecond})
	a := w.register("Parallel")
	var created, conflicts, others atomic.Int32
	var wg sync.WaitGroup
	ids := sync.Map{}
	for range 20 {
		wg.Go(func() {
			r := w.do("POST", "/v1/sessions", oneGB, a.as, key("same"))
			switch {
			case r.status == 201:
				created.Add(1)
				ids.Store(r.str("data.session_id"), true)
			case r.status == 409 && r.at("error.retryable") == true && r.header.Get("Retry-After") != "":
				conflicts.Add(1)
			default:
				others.Add(1)
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	wg.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 || w.provider.Calls(fake.Provision) != 1 {
		t.Errorf("%d sessions, %d provisioned, %d created, %d conflicts", n, w.provider.Calls(fake.Provision), created.Load(), conflicts.Load())
	}
	if got := w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance"); got != 9.5 {
		t.Errorf("balance %v, want 9.5", got)
	}
}
