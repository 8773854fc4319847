package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/throttle"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// fullBatch is the largest report of a session.
func fullBatch(r *rand.Rand, session string) string {
	events := make([]map[string]any, 1000)
	text := make([]byte, 1000)
	for i := range events {
		for j := range text {
			text[j] = byte('a' + r.IntN(26))
		}
		events[i] = map[string]any{"session_id": session, "event_type": "timeout", "error_message": string(text)}
	}
	b, _ := json.Marshal(map[string]any{"events": events})
	return string(b)
}

// An agent on trial reports until it has 50 MB stored. Then nothing of it is stored any more, whatever it asks
// for, but what it has goes on, and so does everybody else.
func TestWhatATrialStores(t *testing.T) {
	t.Parallel()
	o := crowded(t, 5)
	o.stored = throttle.StoredConfig{Trial: 50_000_000, Funded: 1_000_000_000}
	w := newWorld(t, o)
	w.doc = nil // 40 MB of answers are not held against it
	a, victim := w.register("Attacker"), w.register("Victim")
	at := w.local(a)
	bought := w.do("POST", "/v1/sessions", body("dyn_local"), a.as, key("first")).want(201).str("data.session_id")
	batch := fullBatch(rand.New(rand.NewPCG(1, 2)), at[len("/v1/sessions/"):])
	calls := 0
	for ; calls < 100; calls++ {
		if r := w.do("POST", "/v1/telemetry/batch", batch, a.as); r.status != 200 {
			break
		}
	}
	if calls < 40 || calls > 50 {
		t.Errorf("%d calls of 1,000 events were taken, want about 50 MB", calls)
	}
	w.doc = newDocument(t, w.server)
	for _, door := range [][3]string{
		{"POST", "/v1/telemetry/batch", `{"events":[{"session_id":"x","event_type":"success"}]}`},
		{"POST", at + "/report-event", `{"event_type":"success"}`},
		{"POST", "/v1/sessions", body("dyn_local")},
		{"PUT", at + "/policy", `{"mode":"enforce","deny":[".ads.example"]}`},
		{"POST", at + "/workers", `{"count":1000}`},
		{"POST", at + "/workers/w1/rotate", `{}`},
		{"POST", at + "/rotate", `{}`},
		{"POST", "/v1/account/webhook/test", ""},
	} {
		r := w.do(door[0], door[1], door[2], a.as).refused(429, "STORAGE_LIMIT")
		midnight := w.clock.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if until := w.clock.Now().Add(time.Duration(wait) * time.Second); err != nil || until.Before(midnight) ||
			until.After(midnight.Add(time.Second)) || r.at("error.retryable") != true {
			t.Errorf("%s: Retry-After %s: %s", door[1], r.header.Get("Retry-After"), r.body)
		}
	}
	// A repeated purchase has its answer; another one under a key, and one that is only tried, as they should.
	if again := w.do("POST", "/v1/sessions", body("dyn_local"), a.as, key("first")).want(201); again.str("data.session_id") != bought {
		t.Errorf("a repeated purchase is %s", again.body)
	}
	w.do("POST", "/v1/sessions", body("dyn_local"), a.as, key("second")).refused(429, "STORAGE_LIMIT")
	w.do("POST", "/v1/sessions?dry_run=true", body("dyn_local"), a.as).want(200)
	w.do("POST", at+"/rotate", `{}`, a.as, key("third")).refused(429, "STORAGE_LIMIT")
	w.do("POST", at+"/workers", `{"count":3}`, a.as, key("fourth")).refused(429, "STORAGE_LIMIT")
	for i := range 20 {
		w.do("POST", "/v1/sessions", body("dyn_local"), victim.as, key(fmt.Sprint("victim", i))).want(201)
	}
	w.do("GET", at, "", a.as).want(200)
	w.do("GET", at+"/health", "", a.as).want(200)
	w.do("POST", at+"/traffic", `{"traffic_gb":1}`, a.as, key("more")).want(200)
	w.do("DELETE", at, "", a.as).want(200)

	_, err := ledger.NewWallet(w.store, w.clock, w.ids).Adjust(t.Context(), a.ID, domain.Dollar, "paid")
	w.must(err)
	w.clock.Advance(time.Minute)
	w.do("POST", "/v1/sessions", body("dyn_local"), a.as).want(201)
}

// Of the reports of an account on trial the newest 1,000 of a session stay, and 200 characters of a message; its
// policies have 100 rules. All of it ends when it pays.
func TestWhatIsKeptOfATrial(t *testing.T) {
	t.Parallel()
	o := crowded(t, 5)
	o.config = func(c *accounts.Config) { c.Dev, c.FundedFrom = false, account.Funding(domain.Dollar) }
	w := newWorld(t, o)
	w.doc = nil
	a := w.register("Trial")
	at := w.local(a)
	id := at[len("/v1/sessions/"):]
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		w.do("POST", "/v1/telemetry/batch", fullBatch(r, id), a.as).want(200)
	}
	w.do("POST", at+"/report-event", fmt.Sprintf(`{"event_type":"timeout","error_message":%q}`, strings.Repeat("é", 201)), a.as).want(200)
	kept := w.do("GET", at+"/events?page_size=100", "", a.as).want(200)
	if n := kept.num("data.pagination.total"); n < 1000 || n > 2000 {
		t.Errorf("%v events are kept", n)
	}
	for i, want := range []int{200, 200} {
		if text := kept.str(fmt.Sprintf("data.items.%d.error_message", i)); utf8.RuneCountInString(text) != want {
			t.Errorf("message %d has %d characters, want %d", i, utf8.RuneCountInString(text), want)
		}
	}
	w.do("POST", at+"/report-event", fmt.Sprintf(`{"event_type":"timeout","error_message":%q}`, strings.Repeat("é", 1001)), a.as).
		refused(400, "INVALID_REQUEST")

	rules := func(n int, ports string) string {
		deny := make([]string, n)
		for i := range deny {
			deny[i] = fmt.Sprintf(`"h%d.example"`, i)
		}
		return fmt.Sprintf(`{"deny":[%s],"ports":[%s]}`, strings.Join(deny, ","), ports)
	}
	many := strings.TrimSuffix(strings.Repeat(`"80",`, 101), ",")
	buy := func(policy string) string { return strings.Replace(body("dyn_local"), "{", `{"policy":`+policy+",", 1) }
	w.do("PUT", at+"/policy", rules(100, `"443"`), a.as).want(200)
	w.do("PUT", at+"/policy", rules(101, `"443"`), a.as).refused(400, "INVALID_REQUEST")
	w.do("PUT", at+"/policy", rules(1, many), a.as).refused(400, "INVALID_REQUEST")
	w.do("POST", "/v1/sessions", buy(rules(100, `"443"`)), a.as).want(201)
	refusal := w.do("POST", "/v1/sessions", buy(rules(101, `"443"`)), a.as).refused(400, "INVALID_REQUEST")
	if got := refusal.str("error.details.fields.0.field"); got != "policy.deny" {
		t.Errorf("the field is %q: %s", got, refusal.body)
	}

	_, err := ledger.NewWallet(w.store, w.clock, w.ids).Adjust(t.Context(), a.ID, domain.Dollar, "paid")
	w.must(err)
	w.hub.AgentChanged(a.ID)
	w.do("PUT", at+"/policy", rules(1000, `"443"`), a.as).want(200)
	for range 3 {
		w.do("POST", "/v1/telemetry/batch", fullBatch(r, id), a.as).want(200)
	}
	kept = w.do("GET", at+"/events", "", a.as).want(200)
	if n := kept.num("data.pagination.total"); n < 4000 {
		t.Errorf("%v events of a paying account are kept", n)
	}
	if n := len(kept.str("data.items.0.error_message")); n != 1000 {
		t.Errorf("a message of a paying account has %d characters", n)
	}
}

// What a call stores is counted once, and what is refused or repeated is not.
func TestWhatIsNotStoredIsNotCounted(t *testing.T) {
	t.Parallel()
	o := crowded(t, 5)
	o.stored = throttle.StoredConfig{Trial: 10_000, Funded: 10_000}
	w := newWorld(t, o)
	a := w.register("Careful")
	for range 20 {
		w.do("POST", "/v1/sessions", body("dyn_local"), a.as, key("same")).want(201)
		w.do("POST", "/v1/sessions?dry_run=true", body("dyn_local"), a.as).want(200)
		w.do("POST", "/v1/sessions", body("dyn_unknown"), a.as).want(404)
	}
	for range 4 {
		w.do("POST", "/v1/sessions", body("dyn_local"), a.as).want(201)
	}
	w.do("POST", "/v1/sessions", body("dyn_local"), a.as).refused(429, "STORAGE_LIMIT")
}
