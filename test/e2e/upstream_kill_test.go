package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
	"agentproxy/test/fake/upstreamproxy"
	"agentproxy/test/pg"
)

var (
	upstreamKills = flag.Int("upstream.kills", 4, "how often the service is killed while it buys of sellers (200 is the full size)")
	upstreamSeed  = flag.Uint64("upstream.seed", 0, "seed of the moments and the faults; 0: by the clock")
	upstreamAll   = flag.Bool("upstream.all", false, "buy of every kind of seller, and renew; what is lost there takes some 20 minutes to be proven")
	upstreamChaos = flag.Float64("upstream.faults", 0.3, "how many of the sellers' answers go wrong")
)

// stall is a seller of the kill test.
type stall struct {
	provider, product, body string
	server                  *seller.Server
	live                    func() []string // refs of what it has sold and not taken back
	renewals                func() int      // nil: it does not renew
}

// stalls are the sellers that are bought of, and how they are configured. Pool
// keys have a name and may be asked for again, so that nothing of theirs takes long
// to be proven.
func stalls(t *testing.T) (list []stall, config string, env []string) {
	keys, _, provider := ssx(t)
	list = append(list, stall{provider: "sx", product: "dyn_sx", body: dynamic("dyn_sx", "1"), server: keys.Server, live: func() (refs []string) {
		for _, k := range keys.Keys() {
			refs = append(refs, k.ID)
		}
		return refs
	}})
	providers, products := provider, traffic("sx", "dyn_sx", ", provisioning: sync")
	env = []string{ssxKey}
	if *upstreamAll {
		royal, resi, ps, cheapest := iproyal.New(t), iproyal.New(t), proxyseller.New(t), proxycheap.New(t)
		residential := upstreamproxy.New(t, "iproyal", "nobody", "nothing")
		ps.SetBalance(1e12)
		royal.SetBalance(1e12)
		cheapest.SetBalance(1e12)
		for _, place := range []int64{iproyal.UnitedStates, iproyal.Germany} {
			royal.SetStock(place, 1e6)
		}
		ps.SetStock("USA", 1e6)
		cheapest.SetStock("US", 1e6)
		providers += fmt.Sprintf("  - {name: royal, kind: iproyal, base_url: %q, per_second: 1000, secrets: {key: {env: ROYAL_KEY}}}\n"+
			"  - {name: resi, kind: iproyal, base_url: %q, per_second: 1000, secrets: {residential_key: {env: ROYAL_RESI}}, options: {gateway: \"%s\"}}\n"+
			"  - {name: ps, kind: proxyseller, base_url: %q, per_second: 1000, secrets: {key: {env: PS_KEY}}, options: {purpose: tests}}\n"+
			"  - {name: cheap, kind: proxycheap, base_url: %q, per_second: 1000, options: {balance_unit: cents}, secrets: {key: {env: CHEAP_KEY}, secret: {env: CHEAP_SECRET}}}\n",
			royal.URL, resi.URL, residential.Addr(), ps.Base(), cheapest.URL)
		products += addresses("royal", "sta_royal", iproyal.SKU) + traffic("resi", "dyn_resi", "") + addresses("ps", "sta_ps", "") +
			addresses("cheap", "sta_cheap", proxycheap.Plan)
		env = append(append(env, cheapEnv...), "ROYAL_KEY="+iproyal.Key, "ROYAL_RESI="+iproyal.ResidentialKey, "PS_KEY="+proxyseller.Key)
		list = append(list,
			stall{"royal", "sta_royal", static("sta_royal", 1), royal.Server, func() (refs []string) {
				for _, o := range royal.Orders() {
					refs = append(refs, strconv.FormatInt(o.ID, 10))
				}
				return refs
			}, func() (n int) {
				for _, o := range royal.Orders() {
					n += o.Extended
				}
				return n
			}},
			stall{provider: "resi", product: "dyn_resi", body: dynamic("dyn_resi", "0.1"), server: resi.Server, live: func() (refs []string) {
				for _, u := range resi.SubUsers() {
					refs = append(refs, u.Hash)
				}
				return refs
			}},
			stall{"ps", "sta_ps", static("sta_ps", 1), ps.Server, ps.Refs, ps.Renewals},
			stall{"cheap", "sta_cheap", static("sta_cheap", 1), cheapest.Server, func() (refs []string) {
				for _, o := range cheapest.Orders() {
					refs = append(refs, o.ID)
				}
				return refs
			}, func() (n int) {
				for _, o := range cheapest.Orders() {
					n += o.Proxies[0].Extended
				}
				return n
			}})
	}
	return list, "embedded: false\nproviders:\n" + providers + "products:\n" + products, env
}

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
	chosen := *upstreamSeed
	if chosen == 0 {
		chosen = uint64(time.Now().UnixNano())
	}
	t.Logf("replay with -upstream.seed=%d", chosen)
	moments := rand.New(rand.NewPCG(chosen, 1))
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
	for i, s := range sellers {
		s.server.Sometimes(chosen+uint64(i), *upstreamChaos, seller.Mixed...)
	}
	var done tally
	began := time.Now()
	for round := range *upstreamKills {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() { m.business(ctx, key, fmt.Sprint(round, "-", i), sellers, &done) })
		}
		time.Sleep(time.Duration(50+moments.IntN(1200)) * time.Millisecond)
		m.kill()
		cancel()
		wg.Wait()
		if round == *upstreamKills-1 && !*upstreamAll {
			// Whoever had these is dead, and nobody has to wait until that is certain.
			if _, err := db.Exec(`UPDATE upstream_orders SET next_at = planned_at WHERE status IN ('planned', 'sent')`); err != nil {
				t.Fatal(err)
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

func (n *tally) String() string {
	return fmt.Sprintf("%d sessions created, %d later, %d failed, %d terminated, %d renewed", n.created.Load(), n.later.Load(),
		n.failed.Load(), n.terminated.Load(), n.renewed.Load())
}

// business buys, renews and terminates until the service is gone.
func (m *market) business(ctx context.Context, key, name string, sellers []stall, done *tally) {
	for n := 0; ctx.Err() == nil; n++ {
		of := sellers[n%len(sellers)]
		r, err := m.call(ctx, "POST", "/sessions", key, of.body, "Idempotency-Key", fmt.Sprint(name, "-", n))
		if err != nil {
			return
		}
		var d sessionData
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
			return
		}
		if n%2 == 0 && d.SessionID != "" {
			if r, err := m.call(ctx, "POST", "/sessions/"+d.SessionID+"/terminate", key, ""); err == nil && r.status == 200 {
				done.terminated.Add(1)
			}
		}
		if of.renewals == nil || n%3 != 0 {
			continue
		}
		if id := m.oldest(ctx, key, of.product); id != "" {
			if r, err := m.call(ctx, "POST", "/sessions/"+id+"/renew", key, ""); err == nil && r.status == 200 {
				done.renewed.Add(1)
			}
		}
	}
}

// oldest is an active session of a product; empty: there is none.
func (m *market) oldest(ctx context.Context, key, product string) string {
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

// settles waits until nothing is on its way, and compares what each seller has with
// what the service knows of.
func (m *market) settles(db *sql.DB, sellers []stall) {
	m.t.Helper()
	limit := 3 * time.Minute
	if *upstreamAll {
		limit = 25 * time.Minute
	}
	began := time.Now()
	within(m.t, limit, "quiet", func() bool {
		return m.number(db, `SELECT count(*) FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
			WHERE o.status IN ('planned', 'sent', 'unknown') OR o.status = 'confirmed' AND o.closed_at = 0 AND (s.status <> 'active' OR o.state <> 'live')`)+
			m.number(db, `SELECT count(*) FROM sessions WHERE status = 'creating'`) == 0
	})
	m.t.Logf("quiet after %v, with %d orders: %d confirmed, %d refused", time.Since(began).Round(time.Second), m.number(db, `SELECT count(*) FROM upstream_orders`),
		m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'confirmed'`), m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'refused'`))
	for _, s := range sellers {
		// What cannot be given up runs to its end: it is known, and closed.
		known := m.texts(db, `SELECT ref FROM upstream_orders WHERE kind = 'purchase' AND status = 'confirmed' AND provider = '`+s.provider+
			`' AND (closed_at = 0 OR reason = 'it runs to its end at the provider')`)
		sold := s.live()
		slices.Sort(sold)
		if !slices.Equal(sold, known) {
			lost := slices.DeleteFunc(slices.Clone(sold), func(ref string) bool { return slices.Contains(known, ref) })
			m.t.Errorf("%s has %d orders and we know of %d; nobody knows of %v", s.provider, len(sold), len(known), lost)
		}
		active := m.number(db, `SELECT count(*) FROM sessions WHERE status = 'active' AND provider = '`+s.provider+`'`)
		open := m.number(db, `SELECT count(*) FROM upstream_orders WHERE kind = 'purchase' AND status = 'confirmed' AND closed_at = 0 AND provider = '`+s.provider+`'`)
		if active != open {
			m.t.Errorf("%s: %d sessions are active with %d orders", s.provider, active, open)
		}
		m.t.Logf("%s: %d sales, %d live orders, %d active sessions", s.provider, s.server.Sales(), len(sold), active)
		if s.renewals == nil {
			continue
		}
		if made, known := s.renewals(), m.number(db, `SELECT count(*) FROM upstream_orders WHERE kind = 'renewal' AND status = 'confirmed' AND provider = '`+s.provider+`'`); made != known {
			m.t.Errorf("%s renewed %d times, we know of %d", s.provider, made, known)
		}
	}
}

// balances checks that the agents paid for what they have: 9 USD an address and a
// renewal, and 3 USD held for a GB.
func (m *market) balances(db *sql.DB, keys []string) {
	m.t.Helper()
	paid := 9 * m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'confirmed' AND type = 'static'`)
	held := m.number(db, `SELECT COALESCE(sum(o.bytes), 0) FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.type = 'dynamic' AND s.status = 'active'`) * 3 / 1e6
	left := 0
	for _, key := range keys {
		var b struct{ Balance json.Number }
		m.must(200, "GET", "/billing/balance", key, "").into(m.t, &b)
		f, err := b.Balance.Float64()
		if err != nil {
			m.t.Fatal(err)
		}
		left += int(f*1000 + 0.5)
	}
	if want := len(keys)*1_000_000*1000 - paid*1000 - held; left != want {
		m.t.Errorf("the agents have %d thousandths of a dollar left, want %d: %d paid, %d thousandths held", left, want, paid, held)
	}
}

func (m *market) number(db *sql.DB, query string) (n int) {
	m.t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

func (m *market) texts(db *sql.DB, query string) (list []string) {
	m.t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			m.t.Fatal(err)
		}
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
