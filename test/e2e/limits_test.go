package e2e_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/test/pg"
	"agentproxy/test/redistest"
)

// A burst over two replicas is admitted once, and not at each of them.
func TestReplicasShareTheirLimits(t *testing.T) {
	t.Parallel()
	admitOnce(t, replicas(t, "AGENTPROXY_REGISTER_LIMIT_PER_MINUTE=10"))
}

// With a Redis server, PostgreSQL keeps no limits, and without that server each replica limits alone.
func TestReplicasShareTheirLimitsOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	both := replicas(t, "AGENTPROXY_REGISTER_LIMIT_PER_MINUTE=10", "AGENTPROXY_RATELIMIT_URL="+server.URL())
	key := admitOnce(t, both)
	url := strings.TrimPrefix(both[0].env[len(both[0].env)-3], "AGENTPROXY_DATABASE_URL=")
	if run(t, url, "SELECT 1 FROM rate_limits") {
		t.Error("PostgreSQL has limits too")
	}
	server.Stop()
	for i, s := range both {
		within(t, soon, fmt.Sprintf("replica %d logs that it limits alone", i), func() bool {
			if r, err := s.call(t.Context(), "GET", "/products", key, ""); err != nil || r.status != 200 && r.status != 429 {
				t.Errorf("without Redis: %d, %v", r.status, err)
			}
			return strings.Contains(s.log.String(), "rate limits hold for each process alone")
		})
		if text := s.shows(`agentproxy_ratelimit_store_calls_total{result="failed"}`); strings.Contains(text,
			`agentproxy_ratelimit_store_calls_total{result="failed"} 0`) {
			t.Errorf("replica %d counts no failure of Redis", i)
		}
	}
}

// admitOnce checks that bursts over two replicas, which admit 10 registrations a minute, are admitted up to the
// limit. It returns a key of an account with a limit of 600.
func admitOnce(t *testing.T, both [2]*service) string {
	t.Helper()
	began := time.Now()
	key, id := both[0].register("busy")
	small, smallID := both[1].register("small")
	counts, more := together(30, func(i int) (reply, error) {
		return both[i%2].call(t.Context(), "POST", "/account/register", "", fmt.Sprintf(`{"name":"more %d"}`, i))
	})
	// An admitted one that the database had no time for on a busy machine has spent its permit.
	admitted := counts[201] + counts[503]
	if late := int(time.Since(began).Seconds() / 6); admitted < 8 || admitted > 8+late || admitted+counts[429] != 30 || counts[201] == 0 {
		t.Errorf("registrations after two: %v; the first printed:\n%s", counts, both[0].log)
	}
	both[0].object("agent", "set-rate-limit", smallID, "--per-minute", "30")
	both[0].object("agent", "set-rate-limit", id, "--per-minute", "600")
	// A later change holds at both replicas only after the limits do.
	var last struct {
		APIKey  string `json:"api_key"`
		AgentID string `json:"agent_id"`
	}
	for _, r := range more {
		if r.status == 201 {
			r.into(t, &last)
		}
	}
	both[0].object("agent", "disable", last.AgentID, "--reason", "last")
	for _, s := range both {
		s.promised(time.Second, "a change holds", func() bool {
			r, err := s.call(t.Context(), "GET", "/billing/balance", last.APIKey, "")
			return err == nil && r.code() == "ACCOUNT_DISABLED"
		})
	}
	for _, c := range []struct {
		key                string
		limit, calls, most int
	}{{small, 30, 45, 30}, {key, 600, 900, 630}} {
		began = time.Now()
		var negative atomic.Int32
		counts, _ = together(c.calls, func(i int) (reply, error) {
			r, err := both[i%2].call(t.Context(), "GET", "/products", c.key, "")
			if err != nil { // a connection that a busy machine has let wait for too long
				r, err = both[i%2].call(t.Context(), "GET", "/products", c.key, "")
			}
			if err == nil && r.status != 503 && (r.header.Get("X-RateLimit-Limit") != fmt.Sprint(c.limit) || r.header.Get("X-RateLimit-Remaining") < "0") {
				negative.Add(1)
			}
			return r, err
		})
		late := int(time.Since(began).Seconds() * float64(c.limit) / 60) // this much is free again
		// A replica of a slow machine that had no answer of the store in time admits the limit alone.
		if strings.Contains(both[0].log.String()+both[1].log.String(), "rate limits hold for each process alone") {
			late = c.calls
		}
		if n := counts[200] + counts[503]; n < c.limit || n > c.most+late || n+counts[429] != c.calls || negative.Load() > 0 {
			t.Errorf("%d a minute: %v in %v, %d wrong headers", c.limit, counts, time.Since(began), negative.Load())
		}
	}
	return key
}

func TestWithoutItsServerLimitsHoldAlone(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	s := serve(t, append(onPostgres(server.Database(t)), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=20", "AGENTPROXY_REGISTER_LIMIT_PER_MINUTE=1")...)
	key, _ := s.register("patient")
	// What is in memory of an account is dropped when its registration comes by the feed. A later change has
	// come: so has that.
	last := s.object("agent", "add", "--name", "last")
	s.object("agent", "disable", last["agent_id"].(string), "--reason", "last")
	s.promised(time.Second, "the last change holds", func() bool {
		r, err := s.call(t.Context(), "GET", "/billing/balance", last["api_key"].(string), "")
		return err == nil && r.code() == "ACCOUNT_DISABLED"
	})
	s.must(200, "GET", "/products", key, "")
	if err := server.Stop("immediate"); err != nil {
		t.Fatal(err)
	}
	s.must(429, "POST", "/account/register", "", `{"name":"one too many"}`)
	began := time.Now()
	counts, _ := together(40, func(int) (reply, error) { return s.call(t.Context(), "GET", "/products", key, "") })
	if late := int(time.Since(began).Seconds() / 3); counts[200] < 19 || counts[200] > 20+late || counts[200]+counts[429] != 40 {
		t.Errorf("without the server: %v", counts)
	}
	if err := server.Begin(); err != nil {
		t.Fatal(err)
	}
}
