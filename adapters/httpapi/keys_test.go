package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/app/throttle"
	"agentproxy/domain/account"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, other := w.register("Keys"), w.register("Other")
	expires := w.clock.Now().Add(time.Hour).Format(time.RFC3339)
	created := w.do("POST", "/v1/account/keys", fmt.Sprintf(`{"name":"CI","permissions":["sessions:read"],"expires_at":%q}`, expires), a.as).
		want(201).golden("create-key")
	ci := agent{a.ID, created.str("data.api_key"), ""}
	w.do("GET", "/v1/account/keys", "", a.as).want(200).golden("list-keys")
	if text := string(w.do("GET", "/v1/account/keys?page=2&page_size=1", "", a.as).want(200).body); strings.Contains(text, a.Key) || !strings.Contains(text, `"name":"first"`) {
		t.Errorf("the second page is %s", text)
	}
	w.do("GET", "/v1/sessions", "", ci.as).want(200)
	for _, call := range [][2]string{{"GET", "/v1/account/info"}, {"POST", "/v1/account/keys"}, {"DELETE", "/v1/account/keys/x"}, {"POST", "/v1/account/rotate-key"}} {
		w.do(call[0], call[1], `{}`, ci.as).refused(403, "AUTH_INSUFFICIENT_PERMISSION")
	}
	for _, body := range []string{`{}`, `{"name":"x"}`, `{"name":"CI","permissions":["admin"]}`, `{"name":"CI","expires_at":"soon"}`,
		`{"name":"CI","expires_at":"2020-01-01T00:00:00Z"}`} {
		w.do("POST", "/v1/account/keys", body, a.as).refused(400, "INVALID_REQUEST")
	}
	id := created.str("data.key_id")
	w.do("PATCH", "/v1/account/keys/"+id, `{"budget":{"total":10,"daily":2.5},"products":["dyn_sync"],"max_sessions":5,"sessions":"own"}`, a.as).
		want(200).golden("change-key")
	w.do("PATCH", "/v1/account/keys/"+id, `{"budget":null,"products":null,"max_sessions":null,"sessions":null}`, a.as).want(200)
	for _, unknown := range []string{"key_none", "%00", strings.Repeat("a", 100)} {
		w.do("DELETE", "/v1/account/keys/"+unknown, "", a.as).refused(404, "NOT_FOUND")
	}
	w.do("DELETE", "/v1/account/keys/"+id, "", other.as).refused(404, "NOT_FOUND")
	first := w.do("GET", "/v1/account/keys?page=2&page_size=1", "", a.as).str("data.items.0.key_id")
	w.do("DELETE", "/v1/account/keys/"+first, "", a.as).refused(400, "INVALID_REQUEST")
	w.do("DELETE", "/v1/account/keys/"+id, "", a.as).want(200).golden("delete-key")
	w.do("GET", "/v1/sessions", "", ci.as).refused(401, "AUTH_INVALID_KEY")
}

// A key that another issued ends with it, unless the caller keeps it.
func TestChildrenOfAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Parents")
	for query, status := range map[string]int{"": 401, "?children=end": 401, "?children=keep": 200} {
		parent := w.do("POST", "/v1/account/keys", `{"name":"Parent","permissions":["account:read","account:write"]}`, a.as).want(201)
		issuer := agent{a.ID, parent.str("data.api_key"), ""}
		child := w.do("POST", "/v1/account/keys", `{"name":"Child","permissions":["account:read"]}`, issuer.as).want(201)
		w.do("DELETE", "/v1/account/keys/"+parent.str("data.key_id")+query, "", a.as).want(200)
		w.do("GET", "/v1/account/info", "", agent{a.ID, child.str("data.api_key"), ""}.as).want(status)
	}
	w.do("DELETE", "/v1/account/keys/key_x?children=sell", "", a.as).refused(400, "INVALID_REQUEST")
}

func TestRotateKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Rotate")
	for _, body := range []string{`{}`, fmt.Sprintf(`{"api_secret":%q,"grace_seconds":86401}`, a.Secret),
		fmt.Sprintf(`{"api_secret":%q,"grace_seconds":-1}`, a.Secret)} {
		w.do("POST", "/v1/account/rotate-key", body, a.as).refused(400, "INVALID_REQUEST")
	}
	w.do("POST", "/v1/account/rotate-key", `{"api_secret":"sk_wrong"}`, a.as).refused(401, "AUTH_INVALID_KEY")
	r := w.do("POST", "/v1/account/rotate-key", fmt.Sprintf(`{"api_secret":%q,"grace_seconds":60}`, a.Secret), a.as).want(200).golden("rotate-key")
	old, fresh := a, agent{a.ID, r.str("data.api_key"), a.Secret}
	w.do("GET", "/v1/account/info", "", old.as).want(200)
	w.clock.Advance(time.Minute)
	w.do("GET", "/v1/account/info", "", old.as).refused(401, "AUTH_INVALID_KEY")
	w.do("GET", "/v1/account/info", "", fresh.as).want(200)
	w.token(fresh)
}

func TestWrongKeysAreLookedUpThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{limits: throttle.Config{WrongKeysPerMinute: 3}})
	a, b := w.register("Known"), w.register("New")
	get := func(key, addr string) *answer {
		return w.do("GET", "/v1/account/info", "", header("X-Api-Key", key), through(addr))
	}
	get(a.Key, "192.0.2.1").want(200)
	for i := range 3 {
		get(fmt.Sprint("ak_wrong", i), "192.0.2.1").refused(401, "AUTH_INVALID_KEY")
	}
	limited := get("ak_wrong3", "192.0.2.1").refused(429, "RATE_LIMIT_EXCEEDED")
	if limited.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	w.do("POST", "/v1/auth/token", `{"api_key":"ak_wrong4","api_secret":"sk_x"}`, through("192.0.2.1")).refused(429, "RATE_LIMIT_EXCEEDED")
	get(a.Key, "192.0.2.1").want(200)                                  // from memory
	get(b.Key, "192.0.2.2").want(200)                                  // from another address
	get("no key at all", "192.0.2.1").refused(401, "AUTH_INVALID_KEY") // which needs no look-up
	w.clock.Advance(20 * time.Second)
	get("ak_wrong5", "192.0.2.1").refused(401, "AUTH_INVALID_KEY")
}

// A neighbour behind the same address translation who tries keys, also such as have the form and the checksum of
// one, keeps others out neither of the API nor of its tokens.
func TestWrongKeysOfANeighbourLockNoRightOneOut(t *testing.T) {
	t.Parallel()
	const limit = 300
	w := newWorld(t, options{limits: throttle.Config{WrongKeysPerMinute: limit}, tagged: true})
	a, b := w.register("Waits"), w.register("Waits too")
	const from = "192.0.2.1"
	last := 0
	for i := range limit + 1 {
		random := fmt.Sprintf("%0*d", account.KeyRandom, i)
		last = w.do("GET", "/v1/account/info", "", header("X-Api-Key", account.EarlyAPIKey(random)), through(from)).status
	}
	if last != 429 {
		t.Fatalf("after %d wrong keys the next is answered %d", limit, last)
	}
	w.do("GET", "/v1/account/info", "", a.as, through(from)).want(200)
	w.do("POST", "/v1/auth/token", fmt.Sprintf(`{"api_key":%q,"api_secret":%q}`, b.Key, b.Secret), through(from)).want(200)
}
