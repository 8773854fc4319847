package e2e_test

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

var toppedUp = flag.Int("topup.sessions", campaign.Rounds(6, 60), "how many sessions cross their threshold when a replica is killed")

// TestAKillTopsUpEachSessionOnce kills one of two replicas while the traffic of sessions at both crosses the
// threshold of their auto top-up: each session buys once, and the ledger has what was used.
func TestAKillTopsUpEachSessionOnce(t *testing.T) {
	t.Parallel()
	const each = 1_500_000 // at each replica; the threshold is crossed after 1 MB
	both := replicas(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_SESSION_LIMIT=0", outage)
	victim, lives := both[0], both[1]
	key, _ := victim.register("buyer")
	target, goOn := halves(t, each)
	ids := make([]string, *toppedUp)
	delivered := make([][2]atomic.Int64, *toppedUp)
	var wg sync.WaitGroup
	for i := range ids {
		var d apiclient.Session
		victim.must(201, "POST", "/sessions", key, `{"type":"dynamic","auto_top_up":{"below_percent":99,"add_gb":0.1,"max_per_day":9},
			"config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`).into(t, &d)
		ids[i] = d.SessionID
		for n, at := range both {
			proxy := at.proxyAt(key, d.SessionID)
			wg.Go(func() {
				status, err := downloadLater(proxy, target, &delivered[i][n])
				if at == lives && (status != 200 || err != nil) {
					t.Errorf("at the replica that lives: %d, %v", status, err)
				}
			})
		}
	}
	crossed := func() (n int) {
		for i := range ids {
			if delivered[i][0].Load()+delivered[i][1].Load() > 1_000_000 {
				n++
			}
		}
		return n
	}
	within(t, soon, "half of the sessions cross the threshold", func() bool { return crossed() >= len(ids)/2 })
	victim.kill()
	goOn()
	wg.Wait()
	var s struct {
		TrafficGB float64 `json:"traffic_gb"`
	}
	for _, id := range ids {
		lives.promised(reclaimed, "the addition", func() bool {
			lives.must(200, "GET", "/sessions/"+id, key, "").into(t, &s)
			return s.TrafficGB >= 0.2
		})
		lives.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	}
	lives.inherits(ids...)
	for i, id := range ids {
		var feed struct {
			Items []struct {
				Type string `json:"type"`
			}
		}
		lives.settled(key, id, delivered[i][1].Load(), delivered[i][0].Load()+delivered[i][1].Load())
		lives.must(200, "GET", "/sessions/"+id, key, "").into(t, &s)
		lives.must(200, "GET", "/sessions/"+id+"/events?page_size=100", key, "").into(t, &feed)
		events := 0
		for _, e := range feed.Items {
			if e.Type == "topped_up" {
				events++
			}
		}
		if s.TrafficGB != 0.2 || events != 1 {
			t.Errorf("%s has %v GB after %d additions, want 0.2 after one", id, s.TrafficGB, events)
		}
	}
	var holds struct{ Pagination struct{ Total int } }
	lives.must(200, "GET", "/billing/transactions?type=hold", key, "").into(t, &holds)
	if holds.Pagination.Total != 2*len(ids) {
		t.Errorf("%d holds for %d sessions", holds.Pagination.Total, len(ids))
	}
	lives.verify()
	victim.start()
}
