package httpapi_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/reveals"
	"agentproxy/app/throttle"
)

// link returns the token of a link to the credentials of a session.
func (w *world) link(a agent, session string) string {
	w.t.Helper()
	c, err := w.accounts.AuthenticateKey(w.t.Context(), a.Key, nil)
	w.must(err)
	l, err := w.reveals.Issue(w.t.Context(), c, session)
	w.must(err)
	return l.Token
}

// buyNow buys a session that is active at once.
func (w *world) buyNow(a agent) (id, password string) {
	w.t.Helper()
	r := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","traffic_gb":1}}`, a.as).want(201)
	return r.str("data.session_id"), r.str("data.proxy.password")
}

func TestRevealLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Revealer")
	id, password := w.buyNow(a)
	url := "http://" + strings.TrimPrefix(id, "sess_") + "r0:" + password + "@proxy.test:8081"

	once := "/v1/reveal/" + w.link(a, id)
	w.do("HEAD", once, "").want(405)
	w.do("GET", once+"?as=toml", "").refused(400, "INVALID_REQUEST")
	r := w.do("GET", once, "").want(200)
	if string(r.body) != url+"\n" || r.header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		t.Errorf("revealed %v %s", r.header, r.body)
	}
	w.do("GET", once, "").refused(410, "REVEAL_LINK_USED")

	env := w.do("GET", "/v1/reveal/"+w.link(a, id)+"?as=env", "").want(200)
	if !strings.Contains(string(env.body), "export HTTPS_PROXY='"+url+"'\n") ||
		!strings.Contains(string(env.body), "export PROXY_PASSWORD='"+password+"'\n") {
		t.Errorf("variables %s", env.body)
	}
	var list struct {
		Proxies []struct{ Host, Username, Password, URL string }
	}
	text := w.do("GET", "/v1/reveal/"+w.link(a, id)+"?as=json", "").want(200)
	w.must(json.Unmarshal(text.body, &list))
	if len(list.Proxies) != 1 || list.Proxies[0].Password != password || list.Proxies[0].URL != url {
		t.Errorf("proxies %s", text.body)
	}

	late := w.link(a, id)
	w.clock.Advance(reveals.Lifetime)
	w.do("GET", "/v1/reveal/"+late, "").refused(410, "REVEAL_LINK_USED")
	w.do("GET", "/v1/reveal/"+late+"x", "").refused(404, "REVEAL_LINK_UNKNOWN")
	over := w.link(a, id)
	events := w.do("GET", "/v1/sessions/"+id+"/events", "", a.as).want(200)
	if strings.Count(string(events.body), `"type":"revealed"`) != 3 {
		t.Errorf("events %s", events.body)
	}
	w.do("POST", "/v1/sessions/"+id+"/terminate", "", a.as).want(200)
	w.do("GET", "/v1/reveal/"+over, "").refused(410, "SESSION_EXPIRED")
	if _, err := w.reveals.Issue(t.Context(), accounts.Caller{AgentID: w.register("Stranger").ID}, id); err == nil {
		t.Error("another agent got a link")
	}
	if log := w.log.take(); strings.Contains(log, password) || strings.Contains(log, late) {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// A link that was made up is not looked up, so that no right one has to wait for it.
func TestWrongLinksLockNoRightOneOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{limits: throttle.Config{WrongKeysPerMinute: 2}})
	a := w.register("Revealer")
	id, _ := w.buyNow(a)
	link := "/v1/reveal/" + w.link(a, id)
	for range 5 {
		w.do("GET", link+"x", "").refused(404, "REVEAL_LINK_UNKNOWN")
	}
	w.do("GET", link, "").want(200)
	w.must(w.store.Close())
	w.do("GET", link+"x", "").refused(404, "REVEAL_LINK_UNKNOWN") // without a look into the database
}

// A link ends with the password and with the key for which it was issued.
func TestALinkEndsWithItsPasswordAndKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Revealer")
	id, _ := w.buyNow(a)
	link := w.link(a, id)
	w.do("POST", "/v1/sessions/"+id+"/rotate-password", "", a.as).want(200)
	w.do("GET", "/v1/reveal/"+link, "").refused(410, "REVEAL_LINK_USED")
	link = w.link(a, id)
	w.do("POST", "/v1/account/rotate-key", `{"api_secret":"`+a.Secret+`"}`, a.as).want(200)
	w.do("GET", "/v1/reveal/"+link, "").refused(410, "REVEAL_LINK_USED")
}

func TestRevealLinkWorksOnceWhenFetchedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{realTime: true})
	a := w.register("Revealer")
	id, _ := w.buyNow(a)
	token := w.link(a, id)
	var mu sync.Mutex
	var wait sync.WaitGroup
	seen := 0
	for range 20 {
		wait.Go(func() {
			if _, err := w.reveals.Redeem(t.Context(), token); err == nil {
				mu.Lock()
				defer mu.Unlock()
				seen++
			}
		})
	}
	wait.Wait()
	if seen != 1 {
		t.Errorf("the link worked %d times", seen)
	}
}
