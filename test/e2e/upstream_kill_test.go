package e2e_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"agentproxy/adapters/apiclient"
	"agentproxy/domain/procurement"
	"agentproxy/test/campaign"
	"agentproxy/test/fake/seller"
	"agentproxy/test/pg"
)

var (
	upstreamKills = flag.Int("upstream.kills", campaign.Rounds(1, 40), "how often the service is killed while it orders of sellers")
	upstreamAll   = flag.Bool("upstream.all", false, "order of every kind of seller, and renew; the loss of such an order takes some 20 minutes to be proven")
	upstreamChaos = flag.Float64("upstream.faults", 0.3, "how many of the sellers' answers go wrong")
)

func TestKilledWhileItBuysNothingIsLostOrBoughtTwice(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"sqlite", "postgres"} {
		if store == "postgres" && *upstreamAll {
			continue // it takes long enough once
		}
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			killedWhileItBuys(t, store)
		})
	}
}

func killedWhileItBuys(t *testing.T, store string) {
	chosen, moments := campaign.Seed(t), campaign.Rand(t, 4)
	sellers, config, env := stalls(t)
	var database func() *sql.DB
	if store == "postgres" {
		url := pg.Database(t)
		env = append(env, onPostgres(url)...)
		database = func() *sql.DB {
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		}
	}
	m := open(t, config, append(env, "AGENTPROXY_LOG_LEVEL=error")...)
	if database == nil {
		database = m.database
	}
	db := database()
	keys := make([]string, 4)
	for i := range keys {
		keys[i], _ = m.register(fmt.Sprint("killed ", i))
	}
	for _, s := range sellers {
		for _, key := range keys {
			if s.renewals != nil {
				m.buy(key, s.body) // to be renewed
			}
		}
	}
	for i, s := range sellers {
		s.server.Sometimes(chosen+uint64(i), *upstreamChaos, seller.Mixed...)
	}
	var done tally
	began := time.Now()
	for round := range *upstreamKills {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() { m.business(ctx, key, fmt.Sprint(round, "-", i), sellers, round, &done) })
		}
		// The moment is a number of calls: a slow machine would be killed before it
		// has answered any.
		until := done.calls() + 1 + moments.Int64N(16)
		within(t, soon, "calls to kill it in", func() bool { return done.calls() >= until })
		m.kill()
		cancel()
		wg.Wait()
		if round == *upstreamKills-1 && !*upstreamAll {
			// The process that had these is dead: their claims need not expire first.
			// Neither need the calls that it had made.
			for _, query := range []string{`UPDATE upstream_orders SET next_at = planned_at WHERE status IN ('planned', 'sent')`,
				fmt.Sprintf(`UPDATE upstream_orders SET sent_at = sent_at - %d WHERE status IN ('sent', 'unknown')`, procurement.SendTimeout.Microseconds()),
				// One that was cancelled, and not stored as cancelled, is not found, as if it were not listed yet.
				// These sellers list at once, so a few seconds of the delay are enough.
				fmt.Sprintf(`UPDATE upstream_orders SET sent_at = sent_at - %d WHERE status = 'confirmed' AND closed_at = 0`,
					(procurement.ListingDelay - 5*time.Second).Microseconds())} {
				if _, err := db.Exec(query); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.start()
	}
	t.Logf("%d kills in %v: %s", *upstreamKills, time.Since(began).Round(time.Second), &done)
	for _, s := range sellers {
		s.server.Sometimes(0, 0)
	}
	m.settles(db, sellers)
	m.balances(db, keys)
	m.verify()
}

// tally is what the agents asked for, and were answered.
type tally struct{ created, later, failed, terminated, renewed atomic.Int64 }

// calls returns the number of answered calls.
func (n *tally) calls() int64 {
	return n.created.Load() + n.later.Load() + n.failed.Load() + n.terminated.Load() + n.renewed.Load()
}

func (n *tally) String() string {
	return fmt.Sprintf("%d sessions created, %d later, %d failed, %d terminated, %d renewed", n.created.Load(), n.later.Load(),
		n.failed.Load(), n.terminated.Load(), n.renewed.Load())
}

// agenda returns the sellers that an agent orders of in a round: first a seller of
// addresses, which is nil if there is none, then those of traffic. Addresses are
// renewed in the first quarter of the rounds only: the loss of a renewal takes 15
// minutes to be proven.
func agenda(sellers []stall, round int) (first *stall, traffic []stall) {
	var timed []stall
	for _, s := range sellers {
		if s.renewals == nil {
			traffic = append(traffic, s)
		} else {
			timed = append(timed, s)
		}
	}
	if len(timed) == 0 {
		return nil, traffic
	}
	chosen := timed[round%len(timed)]
	if round > *upstreamKills/4 {
		chosen.renewals = nil
	}
	return &chosen, traffic
}

// business orders, renews and terminates until the service is gone. It orders once of
// a seller of addresses, which serializes equal orders.
func (m *sellerService) business(ctx context.Context, key, name string, sellers []stall, round int, done *tally) {
	first, traffic := agenda(sellers, round)
	if first != nil && !m.deal(ctx, key, name+"-first", *first, false, done) {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		if !m.deal(ctx, key, fmt.Sprint(name, "-", n), traffic[n%len(traffic)], n/len(traffic)%2 == 0, done) {
			return
		}
	}
}

// deal orders once, and renews or terminates sessions. It returns false if the service
// is gone.
func (m *sellerService) deal(ctx context.Context, key, name string, of stall, terminate bool, done *tally) bool {
	r, err := m.call(ctx, "POST", "/sessions", key, of.body, "Idempotency-Key", name)
	if err != nil {
		return false
	}
	var d apiclient.Session
	switch r.status {
	case 201:
		done.created.Add(1)
		r.into(m.t, &d)
	case 202:
		done.later.Add(1)
	case 502, 503, 504:
		done.failed.Add(1)
	default:
		m.t.Errorf("create of %s: %d %s", of.product, r.status, r.body)
		return false
	}
	if terminate && d.SessionID != "" {
		if r, err := m.call(ctx, "POST", "/sessions/"+d.SessionID+"/terminate", key, ""); err == nil && r.status == 200 {
			done.terminated.Add(1)
		}
	}
	if of.renewals == nil {
		return true
	}
	if id := m.oldest(ctx, key, of.product); id != "" {
		if r, err := m.call(ctx, "POST", "/sessions/"+id+"/renew", key, ""); err == nil && (r.status == 200 || r.status == 202) {
			done.renewed.Add(1)
		}
	}
	return true
}

// oldest returns the oldest active session of a product, or "" if there is none.
func (m *sellerService) oldest(ctx context.Context, key, product string) string {
	var list struct {
		Items []struct {
			SessionID string `json:"session_id"`
			ProductNo string `json:"product_no"`
		}
	}
	r, err := m.call(ctx, "GET", "/sessions?status=active&page_size=100", key, "")
	if err != nil || r.status != 200 {
		return ""
	}
	r.into(m.t, &list)
	for _, s := range slices.Backward(list.Items) {
		if s.ProductNo == product {
			return s.SessionID
		}
	}
	return ""
}
