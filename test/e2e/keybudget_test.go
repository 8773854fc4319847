package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/test/campaign"
)

// budget is a key of an account with a budget.
type budget struct {
	ID     string `json:"key_id"`
	APIKey string `json:"api_key"`
}

// budget issues a key with limits.
func (s *service) budget(key, limits string) (b budget) {
	s.t.Helper()
	s.must(201, "POST", "/account/keys", key, `{"name":"Child",`+limits+`}`).into(s.t, &b)
	return b
}

const fast = `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`

// spendAll has callers buy at both replicas until each is refused, and returns how many sessions they bought. A
// replica that does not answer ends its callers.
func spendAll(ctx context.Context, both [2]*service, key string, callers int) int64 {
	var bought atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		s := both[i%2]
		wg.Go(func() {
			for {
				r, err := s.call(ctx, "POST", "/sessions", key, fast)
				switch {
				case err != nil || r.status == http.StatusPaymentRequired && r.Error.Details["scope"] == "key":
					return
				case r.status == http.StatusCreated:
					bought.Add(1)
				case r.status != http.StatusServiceUnavailable && r.status != http.StatusUnauthorized: // not yet known there
					s.t.Errorf("a purchase is %d %s", r.status, r.body)
					return
				}
			}
		})
	}
	wg.Wait()
	return bought.Load()
}

// live returns how many live sessions a key has and what it may still spend.
func (s *service) live(key string) (n int, left string) {
	s.t.Helper()
	var b struct {
		Key struct {
			Left json.Number
			Live int `json:"sessions_live"`
		}
	}
	s.must(200, "GET", "/billing/balance", key, "").into(s.t, &b)
	return b.Key.Live, b.Key.Left.String()
}

func TestTheBudgetOfAKeyIsExact(t *testing.T) {
	t.Parallel()
	both := [2]*service(replicas(t, "AGENTPROXY_TRIAL_BALANCE=100000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0",
		"AGENTPROXY_SESSION_LIMIT=0", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0"))
	key, _ := both[0].register("Parent")
	child := both[0].budget(key, `"budget":{"total":10}`)
	if n := spendAll(t.Context(), both, child.APIKey, 64); n != 25 {
		t.Errorf("10.00 bought %d sessions at 0.40, want 25", n)
	}
	var list struct {
		Items []struct {
			ID string `json:"session_id"`
		}
	}
	both[1].must(200, "GET", "/sessions?page_size=5&key="+child.ID, key, "").into(t, &list)
	for _, s := range list.Items {
		both[0].must(200, "DELETE", "/sessions/"+s.ID, key, "")
	}
	if n := spendAll(t.Context(), both, child.APIKey, 64); n != 5 {
		t.Errorf("what came back of 5 bought %d", n)
	}
	both[1].verify()

	moments := campaign.Rand(t, 37)
	for round := range min(*kills, 5) {
		child := both[0].budget(key, `"budget":{"total":4}`)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { spendAll(ctx, both, child.APIKey, 8) })
		victim := both[moments.IntN(2)]
		within(t, soon, "something is bought", func() bool { n, _ := both[0].live(child.APIKey); return n > moments.IntN(8) })
		victim.kill()
		victim.start()
		wg.Wait()
		cancel()
		spendAll(t.Context(), both, child.APIKey, 4)
		if n, left := both[round%2].live(child.APIKey); n != 10 || left != "0" {
			t.Errorf("round %d: after a kill 4.00 has %d sessions at 0.40, and %s is left", round, n, left)
		}
		both[0].must(200, "DELETE", "/account/keys/"+child.ID+"?sessions=end", key, "")
		both[round%2].verify()
		if t.Failed() {
			return
		}
	}
	t.Log(fmt.Sprint(min(*kills, 5), " kills"))
}

// A program issues a key with a budget by apx, and the key spends it.
func TestKeysByApx(t *testing.T) {
	t.Parallel()
	s := shared(t)
	home := t.TempDir()
	out, err := s.shell(home, `
		apx register >/dev/null
		CHILD=$(apx key add Child --total 0.5 --product dyn_fast_1 --own)
		APXKEY=$CHILD; AGENTPROXY_API_KEY=$APXKEY apx buy dyn_fast_1 --gb 1 --max-cost 1 >/dev/null
		AGENTPROXY_API_KEY=$APXKEY apx buy dyn_fast_1 --gb 1 --max-cost 1 || echo "status $?"
		ID=$(apx key ls | grep Child | cut -f1)
		apx key ls
		apx key set $ID --total 2 --max-sessions 1
		apx key rm $ID --end-sessions
		apx ls --status active; echo over`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"status 3", "\tChild\t0\t0.4\t0.1\town\t1", "\tChild\t0\t0.4\t1.6\town\t1", "left: first\nover"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}
