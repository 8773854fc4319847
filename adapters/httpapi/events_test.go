package httpapi_test

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentproxy/app/feed"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
)

// feedTypes reads a page of the feed and returns its types and what follows it.
func (w *world) feedTypes(query string, with agent) (types []string, next string) {
	w.t.Helper()
	r := w.do("GET", "/v1/events"+query, "", with.as).want(200)
	for i := range len(r.at("data.items").([]any)) {
		types = append(types, r.str(fmt.Sprintf("data.items.%d.type", i)))
	}
	return types, url.QueryEscape(r.str("data.next"))
}

func (w *world) wantFeed(query string, with agent, want string) (next string) {
	w.t.Helper()
	types, next := w.feedTypes(query, with)
	if got := strings.Join(types, " "); got != want {
		w.t.Errorf("the events of %q are %q, want %q", query, got, want)
	}
	return next
}

// rotated has an event happen.
func (w *world) rotated(a agent, session string) {
	w.t.Helper()
	w.do("POST", "/v1/sessions/"+session+"/rotate", "", a.as).want(200)
}

func TestEventsOfAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, other := w.register("Agent"), w.register("Other")
	start := w.wantFeed("", a, "")
	id, _ := w.buyNow(a)
	w.rotated(a, id)
	w.buyNow(other)
	w.do("POST", "/v1/account/rotate-secret", "", a.as).want(200)
	all := "session.active session.rotated account.secret_rotated"
	w.wantFeed("", a, all)
	end := w.wantFeed("?after="+start, a, all)
	w.do("GET", "/v1/events?types=session.rotated&limit=101", "", a.as).want(200).golden("list-events")
	w.wantFeed("?types=session.rotated,session.active", a, "session.active session.rotated")
	next := w.wantFeed("?limit=1", a, "session.active")
	next = w.wantFeed("?limit=1&after="+next, a, "session.rotated")
	w.wantFeed("?types=account.secret_rotated&after="+next, a, "account.secret_rotated")
	w.wantFeed("?after="+end, a, "")
	w.wantFeed("", other, "session.active")

	t.Run("a key has the types that it may read", func(t *testing.T) {
		for scopes, want := range map[account.Scope]string{account.SessionsRead: all, account.BillingRead: "account.secret_rotated"} {
			body := fmt.Sprintf(`{"name":%q,"permissions":["account:read",%q]}`, scopes, scopes)
			less := agent{a.ID, w.do("POST", "/v1/account/keys", body, a.as).want(201).str("data.api_key"), ""}
			w.wantFeed("?after="+start, less, want)
			w.wantFeed("?types=session.active&after="+start, less, map[bool]string{true: "session.active"}[scopes == account.SessionsRead])
		}
		none := agent{a.ID, w.do("POST", "/v1/account/keys", `{"name":"none","permissions":["sessions:read"]}`, a.as).want(201).str("data.api_key"), ""}
		w.do("GET", "/v1/events", "", none.as).refused(403, "AUTH_INSUFFICIENT_PERMISSION")
	})
	t.Run("a cursor is of one account and of the events that are kept", func(t *testing.T) {
		w.do("GET", "/v1/events?after="+end, "", other.as).refused(400, "INVALID_REQUEST")
		forged := []byte(end)
		for i := range forged {
			was := forged[i]
			forged[i] ^= 1
			w.do("GET", "/v1/events?after="+url.QueryEscape(string(forged)), "", a.as).refused(400, "INVALID_REQUEST")
			forged[i] = was
		}
		for _, bad := range []string{"after=1", "after=ev_", "after=c1", "wait=31", "wait=-1", "wait=x", "limit=0", "types=session.opened", "types=,", "since=1"} {
			w.do("GET", "/v1/events?"+bad, "", a.as).refused(400, "INVALID_REQUEST")
		}
		w.clock.Advance(30*24*time.Hour - time.Second)
		w.do("GET", "/v1/events?after="+end, "", a.as).want(200)
		w.clock.Advance(time.Second)
		w.do("GET", "/v1/events?after="+end, "", a.as).refused(400, "INVALID_REQUEST")
	})
}

// awaits waits until as many calls wait for events.
func (w *world) awaits(n int) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); w.feed.Waiting() != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d calls wait, want %d", w.feed.Waiting(), n)
		}
	}
}

func TestCallsWaitForEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.doc = nil
	w.must(w.hub.Poll(t.Context()))
	a, other := w.register("Agent"), w.register("Other")
	id, _ := w.buyNow(a)
	_, next := w.feedTypes("", a)
	wait := "/v1/events?wait=30&types=session.rotated,session.terminated&after=" + next
	answers := make(chan *answer, feed.MaxWaiting)
	for range feed.MaxWaiting {
		go func() { answers <- w.do("GET", wait, "", a.as) }()
	}
	w.awaits(feed.MaxWaiting)
	if r := w.do("GET", wait, "", a.as).refused(429, "RATE_LIMIT_EXCEEDED"); r.header.Get("Retry-After") == "" {
		t.Error("a refusal without Retry-After")
	}
	w.wantFeed("?wait=30", a, "session.active") // what has an answer does not wait
	w.buyNow(a)
	otherID, _ := w.buyNow(other)
	w.rotated(other, otherID)
	noted := func() {
		w.must(w.store.FlushEventNotes(t.Context()))
		w.must(w.hub.Poll(t.Context()))
	}
	noted() // nothing that they wait for
	w.rotated(a, id)
	noted()
	for range feed.MaxWaiting {
		if r := <-answers; r.status != 200 || r.str("data.items.0.type") != "session.rotated" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	w.awaits(0)

	t.Run("a call ends with its key", func(t *testing.T) {
		created := w.do("POST", "/v1/account/keys", `{"name":"short"}`, a.as).want(201)
		key := agent{a.ID, created.str("data.api_key"), ""}
		token := w.token(a)
		last := w.wantFeed("", a, "session.active session.active session.rotated")
		go func() { answers <- w.do("GET", "/v1/events?wait=30&after="+last, "", key.as) }()
		go func() { answers <- w.do("GET", "/v1/events?wait=30&after="+last, "", bearer(token)) }()
		w.awaits(2)
		w.do("DELETE", "/v1/account/keys/"+created.str("data.key_id"), "", a.as).want(200)
		(<-answers).refused(401, "AUTH_INVALID_KEY")
		w.clock.Advance(time.Hour)
		(<-answers).refused(401, "AUTH_EXPIRED_TOKEN")
	})
	t.Run("who has most makes room for others", func(t *testing.T) {
		last := w.wantFeed("", a, "session.active session.active session.rotated")
		for range feed.MaxWaiting {
			go func() { answers <- w.do("GET", "/v1/events?wait=30&after="+last, "", a.as) }()
		}
		w.awaits(feed.MaxWaiting)
		others := make(chan *answer, 20)
		for i := range 13 { // of 20 places
			b := w.register(fmt.Sprint("Other", i))
			go func() { others <- w.do("GET", "/v1/events?wait=30", "", b.as) }()
			w.awaits(min(feed.MaxWaiting+i+1, 20))
		}
		if r := <-answers; r.status != 200 || len(r.at("data.items").([]any)) != 0 {
			t.Errorf("%d %s", r.status, r.body)
		}
		w.rotated(a, id)
		noted()
		for range feed.MaxWaiting - 1 {
			(<-answers).want(200)
		}
		w.awaits(13)
	})
	t.Run("calls that wait answer when the process ends", func(t *testing.T) {
		last := w.wantFeed("", a, "session.active session.active session.rotated session.rotated")
		go func() { answers <- w.do("GET", "/v1/events?wait=30&after="+last, "", a.as) }()
		w.awaits(14)
		w.feed.Stop()
		if r := <-answers; r.status != 200 || len(r.at("data.items").([]any)) != 0 {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
}

// One schema for the data of each type, in webhooks and in the feed.
func TestTheDataOfEventsHasASchemaEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	schemas := w.doc.doc.Components.Schemas
	var types []string
	for _, v := range schemas["WebhookType"].Value.Enum {
		types = append(types, v.(string))
	}
	if got := strings.Join(types, " "); got != fmt.Sprint(webhook.Types)[1:len(got)+1] {
		t.Errorf("the types are %s", got)
	}
	for _, of := range types {
		name := "Data"
		for word := range strings.FieldsFuncSeq(of, func(r rune) bool { return r == '.' || r == '_' }) {
			name = name[:len(name)-4] + strings.ToUpper(word[:1]) + word[1:] + "Data"
		}
		if schemas[name] == nil {
			t.Errorf("%s has no schema %s", of, name)
			continue
		}
		least, most := map[string]any{}, map[string]any{}
		for _, f := range webhook.Fields[webhook.Type(of)] {
			if most[f.Name] = "x"; !f.Optional {
				least[f.Name] = "x"
			}
		}
		if len(least) == 0 {
			t.Errorf("%s has no data", of)
		}
		event := map[string]any{"event_id": "evt_1", "type": of, "timestamp": "2026-05-15T12:00:00.000Z"}
		for _, data := range []map[string]any{least, most} {
			event["data"] = data
			if err := errors.Join(schemas[name].Value.VisitJSON(data), schemas["AccountEvent"].Value.VisitJSON(event)); err != nil {
				t.Errorf("%s: %v", of, err)
			}
			delete(event, "event_id")
			if err := schemas["WebhookEvent"].Value.VisitJSON(event); err != nil {
				t.Errorf("%s: %v", of, err)
			}
			event["event_id"] = "evt_1"
		}
		most["other"] = "x"
		if schemas[name].Value.VisitJSON(most) == nil || schemas[name].Value.VisitJSON(map[string]any{}) == nil {
			t.Errorf("%s takes any data", name)
		}
	}
}
