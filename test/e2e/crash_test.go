package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

var rounds = flag.Int("crash.rounds", campaign.Rounds(1, 20), "how often the service is killed")

// answered has the answers of the service to an agent before it was killed.
type answered struct {
	mu         sync.Mutex
	sessions   map[string]string // id -> the last status that was answered
	rotations  map[string]int
	terminated map[string]bool
	answers    int
}

func TestKilledAtRandomMomentsNothingIsLost(t *testing.T) {
	onEachStore(t, killedAtRandomMomentsNothingIsLost)
}

func killedAtRandomMomentsNothingIsLost(t *testing.T, store ...string) {
	moments := campaign.Rand(t, 1)
	s := serve(t, append(store, "AGENTPROXY_TRIAL_BALANCE=10000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0", "AGENTPROXY_SESSION_LIMIT=0", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
	keys := make([]string, 4)
	for i := range keys {
		keys[i], _ = s.register(fmt.Sprint("crash ", i))
	}
	seen := make([]*answered, len(keys))
	for i := range seen {
		seen[i] = &answered{sessions: map[string]string{}, rotations: map[string]int{}, terminated: map[string]bool{}}
	}
	for round := range *rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() { s.trouble(ctx, key, fmt.Sprint(round, "-", i), seen[i]) })
		}
		killAfter(t, s, seen, 8+moments.IntN(40))
		cancel()
		wg.Wait()
		s.verify()
		s.start()
		for i, key := range keys {
			s.holdsTrue(key, seen[i], round)
		}
		s.verify()
		if t.Failed() {
			return
		}
	}
}

// killAfter kills a service after a number of answers: after a time, a slow machine
// would have made none.
func killAfter(t *testing.T, s *service, seen []*answered, answers int) {
	t.Helper()
	count := func() (n int) {
		for _, a := range seen {
			a.mu.Lock()
			n += a.answers
			a.mu.Unlock()
		}
		return n
	}
	until, deadline := count()+answers, time.Now().Add(soon)
	for ; count() < until && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	s.kill()
}

// crash ends the program as a power cut would.
func (s *service) crash() {
	s.alone()
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
}

// kill is crash for tests of something else than who leads: on PostgreSQL another process leads when the claim of a
// dead one has expired, after some 15 s.
func (s *service) kill() {
	s.crash()
	if slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "AGENTPROXY_DATABASE_URL=postgres") }) {
		s.sqlRun("DELETE FROM river_leader")
	}
}

// trouble creates, rotates and terminates until the service is gone.
func (s *service) trouble(ctx context.Context, key, name string, seen *answered) {
	products := []string{"dyn_fast_1", "dyn_global_1"}
	for n := 0; ctx.Err() == nil; n++ {
		r, err := s.call(ctx, "POST", "/sessions", key,
			fmt.Sprintf(`{"type":"dynamic","config":{"product_no":%q,"traffic_gb":0.1}}`, products[n%2]),
			"Idempotency-Key", fmt.Sprint(name, "-", n))
		if err != nil || r.status >= 300 {
			return
		}
		var d apiclient.Session
		if r.into(s.t, &d); d.SessionID == "" {
			s.t.Errorf("an answer without a session: %s", r.body)
			return
		}
		seen.mu.Lock()
		seen.sessions[d.SessionID] = string(d.Status)
		seen.answers++
		seen.mu.Unlock()
		if n%3 == 0 && d.Status == "active" {
			if r, err := s.call(ctx, "POST", "/sessions/"+d.SessionID+"/rotate", key, ""); err == nil && r.status == 200 {
				seen.mu.Lock()
				seen.rotations[d.SessionID]++
				seen.answers++
				seen.mu.Unlock()
			}
		}
		if n%2 == 0 {
			if r, err := s.call(ctx, "POST", "/sessions/"+d.SessionID+"/terminate", key, ""); err == nil && r.status == 200 {
				seen.mu.Lock()
				seen.terminated[d.SessionID] = true
				seen.answers++
				seen.mu.Unlock()
			}
		}
	}
}

// holdsTrue checks that what was answered is so after the restart, and that
// nothing stays creating. The books of each agent are read once more at its end.
func (s *service) holdsTrue(key string, seen *answered, round int) {
	s.t.Helper()
	within(s.t, soon, fmt.Sprintf("round %d: sessions still creating", round), func() bool {
		var list struct{ Pagination struct{ Total int } }
		s.must(200, "GET", "/sessions?status=creating", key, "").into(s.t, &list)
		return list.Pagination.Total == 0
	})
	for id, status := range seen.sessions {
		var d apiclient.Session
		s.must(200, "GET", "/sessions/"+id, key, "").into(s.t, &d)
		switch {
		case seen.terminated[id] && d.Status != "terminated":
			s.t.Errorf("round %d: %s was answered terminated and is %s", round, id, d.Status)
		case status == "active" && d.Status != "active" && d.Status != "terminated":
			s.t.Errorf("round %d: %s was answered active and is %s", round, id, d.Status)
		case d.Rotation.Count < seen.rotations[id]:
			s.t.Errorf("round %d: %s was rotated %d times and shows %d", round, id, seen.rotations[id], d.Rotation.Count)
		}
	}
	clear(seen.sessions)
}
