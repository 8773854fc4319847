package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

var (
	hookEvents = flag.Int("hook.events", campaign.Rounds(20, 1000), "how many events are sent while the service is killed")
	hookKills  = flag.Int("hook.kills", campaign.Rounds(1, 20), "how often it is killed")
)

// receiver is an agent's endpoint: it verifies whatever comes with the published
// library and fails some of the calls.
type receiver struct {
	*httptest.Server
	t     *testing.T
	fails float64 // of the calls

	mu     sync.Mutex
	secret string
	rng    *rand.Rand
	failed map[string]int // calls in a row, by event
	taken  map[string]int // accepted, by event
	types  map[string]int
	calls  int
}

func receive(t *testing.T, fails float64) *receiver {
	t.Helper()
	r := &receiver{t: t, fails: fails, rng: rand.New(rand.NewPCG(1, 2)), failed: map[string]int{}, taken: map[string]int{}, types: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the service was killed in the middle
	}
	r.verify(q.Header, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	id := q.Header.Get("webhook-id")
	// No event fails more often than there are retries.
	if r.failed[id] < 5 && r.rng.Float64() < r.fails {
		r.failed[id]++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.failed[id] = 0
	r.taken[id]++
	_, rest, _ := bytes.Cut(body, []byte(`"type":"`))
	of, _, _ := bytes.Cut(rest, []byte(`"`))
	r.types[string(of)]++
	w.WriteHeader(http.StatusNoContent)
}

// verify holds a call against the library, as it came and with one byte changed.
func (r *receiver) verify(header http.Header, body []byte) {
	r.mu.Lock()
	secret := r.secret
	r.mu.Unlock()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := hook.Verify(body, header); err != nil {
		r.t.Errorf("%v does not verify: %v: %s", header, err, body)
	}
	changed := bytes.Clone(body)
	changed[len(changed)/2] ^= 1
	if hook.Verify(changed, header) == nil {
		r.t.Errorf("a changed byte verifies: %s", changed)
	}
}

// use sets the secret that is valid.
func (r *receiver) use(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// called returns the number of calls.
func (r *receiver) called() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// missing counts the events that were not taken.
func (r *receiver) missing(ids map[string]bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		if r.taken[id] == 0 {
			n++
		}
	}
	return n
}

// listener opens an account with a webhook and returns its key and its secret.
func (s *service) listener(name, url string) (key, secret string) {
	s.t.Helper()
	var a struct {
		APIKey        string `json:"api_key"`
		WebhookSecret string `json:"webhook_secret"`
	}
	s.must(201, "POST", "/account/register", "", fmt.Sprintf(`{"name":%q,"webhook_url":%q}`, name, url)).into(s.t, &a)
	return a.APIKey, a.WebhookSecret
}

// later makes the retries that wait come true, while the service does not run.
func (s *service) later() {
	s.t.Helper()
	s.sqlRun(`UPDATE webhook_deliveries SET next_attempt_at = 1 WHERE status = 'pending'`)
}

// eventIDs returns the ids of all events.
func (s *service) eventIDs() map[string]bool {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, "agentproxy.db")+"?_busy_timeout=10000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT event_id FROM webhook_deliveries`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	ids := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			s.t.Fatal(err)
		}
		ids[id] = true
	}
	return ids
}

// deliveries counts those of a condition.
func (s *service) deliveries(where string) (n int) {
	s.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, "agentproxy.db")+"?_busy_timeout=10000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT count(*) FROM webhook_deliveries WHERE ` + where).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// waits reports whether every delivery has arrived, or failed and waits.
func (s *service) waits() bool {
	s.t.Helper()
	return s.deliveries(fmt.Sprint("status = 'pending' AND next_attempt_at <= ", time.Now().UnixMicro())) == 0
}

func TestKilledAtRandomMomentsEveryEventArrives(t *testing.T) {
	t.Parallel()
	moments := campaign.Rand(t, 2)
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_DEVCHAIN_BLOCK_MS=60000")
	hook := receive(t, 0.3)
	key, secret := s.listener("crash", hook.URL)
	hook.use(secret)

	ids := map[string]bool{}
	var answered atomic.Int64
	count := func() int { return int(answered.Load()) }
	// What arrived and was not stored as delivered is sent again, and may fail and wait for minutes: the next start is
	// later then.
	for kills := 0; kills < *hookKills || count() < *hookEvents || hook.missing(ids) > 0 || s.deliveries("status = 'pending'") > 0; kills++ {
		if kills > *hookKills+30 {
			t.Fatalf("after %d kills %d of %d events did not arrive", kills, hook.missing(ids), count())
		}
		ctx, cancel := context.WithCancel(t.Context())
		goal := min(*hookEvents, (kills+1)**hookEvents / *hookKills)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil && count() < goal {
					r, err := s.call(ctx, "POST", "/account/rotate-secret", key, "")
					if err != nil || r.status != 200 {
						return
					}
					answered.Add(1)
				}
			})
		}
		// The moment is a number of calls: a slow machine would be killed before it
		// has made any.
		moment := hook.called() + 1 + moments.IntN(*hookEvents / *hookKills)
		within(t, 5*soon, "calls to kill it in", func() bool {
			return hook.called() >= moment || count() >= goal && s.waits()
		})
		s.kill()
		cancel()
		wg.Wait()
		if ids = s.eventIDs(); len(ids) < count() {
			t.Fatalf("%d events of %d calls are stored", len(ids), count())
		}
		s.later()
		s.start()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d events, %d calls", len(ids), hook.calls)
	within(t, soon, "every delivery is known to have arrived", func() bool {
		var list struct{ Pagination struct{ Total int } }
		s.must(200, "GET", "/account/webhook/deliveries?status=delivered", key, "").into(t, &list)
		return list.Pagination.Total >= len(ids)
	})
}

// deliveryData is what the tests read of a delivery.
type deliveryData struct {
	DeliveryID string `json:"delivery_id"`
	Status     string
	Attempts   int
	LastError  string `json:"last_error"`
}

// newest waits until the newest delivery was tried.
func (s *service) newest(key string) (d deliveryData) {
	s.t.Helper()
	within(s.t, soon, "an attempt", func() bool {
		var list struct{ Items []deliveryData }
		s.must(200, "GET", "/account/webhook/deliveries?page_size=1", key, "").into(s.t, &list)
		if len(list.Items) > 0 {
			d = list.Items[0]
		}
		return d.Attempts > 0
	})
	return d
}

// What happens to sessions and to money arrives, signed with both secrets while
// two are valid, and other agents' receivers that hang delay nothing.
func TestEventsArrive(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-hang:
		case <-q.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(hang)
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	slowKey, _ := s.listener("slow", slow.URL)
	for range 60 {
		s.must(200, "POST", "/account/rotate-secret", slowKey, "")
	}

	hook := receive(t, 0)
	key, secret := s.listener("beside", hook.URL)
	hook.use(secret)
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":25}}`).into(t, &d)
	var rotated struct {
		WebhookSecret string `json:"webhook_secret"`
	}
	s.must(200, "POST", "/account/webhook/rotate-secret", key, "").into(t, &rotated)
	arrived := func(of string, more int) {
		within(t, soon, of, func() bool {
			hook.mu.Lock()
			defer hook.mu.Unlock()
			return hook.types[of] > more
		})
	}
	for i, valid := range []string{secret, rotated.WebhookSecret} {
		hook.use(valid)
		s.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "")
		arrived("session.rotated", i)
	}
	s.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	s.must(200, "POST", "/account/rotate-secret", key, "")
	for _, of := range []string{"session.active", "balance.low", "session.rotated", "session.terminated", "account.secret_rotated"} {
		arrived(of, 0)
	}
}

// Outside development mode no receiver on this host is reached unless the
// operator allows its network, and a listener of the service never.
func TestReceiversAreJudged(t *testing.T) {
	t.Parallel()
	hook := httptest.NewTLSServer(http.NotFoundHandler())
	defer hook.Close()
	allowing := map[string]*service{}
	for _, allow := range []string{"", "127.0.0.0/8"} {
		allowing[allow] = serve(t, "AGENTPROXY_DEV=false", "AGENTPROXY_WEBHOOK_ALLOW_NETWORKS="+allow)
	}
	for _, c := range []struct{ allow, at, want string }{
		{"", "hook", "not a public address"},
		{"127.0.0.0/8", "hook", "certificate"},
		{"127.0.0.0/8", "api", "not a public address"},
		{"127.0.0.0/8", "gateway", "not a public address"},
	} {
		s := allowing[c.allow]
		url := map[string]string{"hook": hook.URL, "api": "https://" + s.api, "gateway": "https://" + s.gateway}[c.at]
		key, _ := s.listener("checked", url)
		s.must(200, "POST", "/account/webhook/test", key, "")
		if d := s.newest(key); !strings.Contains(d.LastError, c.want) || d.Status != "failed" {
			t.Errorf("%+v: %+v", c, d)
		}
		s.must(400, "PUT", "/account/info", key, `{"webhook_url":"http://example.com/"}`)
	}
}
