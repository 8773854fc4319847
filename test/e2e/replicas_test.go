package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

var (
	transfers = flag.Int("replicas.transfers", campaign.Rounds(12, 40), "how many transfers two watchers credit")
	downloads = flag.Int("replicas.downloads", campaign.Rounds(30, 100), "how many downloads run over two gateways at once")
	kills     = flag.Int("replicas.kills", campaign.Rounds(1, 40), "how often a replica is killed")
)

// proxyAt returns the proxy of a session at the gateway of a replica.
func (s *service) proxyAt(key, id string) *url.URL {
	s.t.Helper()
	proxy, err := url.Parse(s.session(key, id).Proxy.HTTPURL)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy.Host = s.gateway
	return proxy
}

// dynamic buys a dynamic session that works at once.
func (s *service) dynamic(key, gigabytes string) (id string) {
	s.t.Helper()
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":`+gigabytes+`}}`).into(s.t, &d)
	return d.SessionID
}

// tunnel opens a tunnel to a silent target. The function that it returns reports
// whether the tunnel has ended.
func tunnel(t *testing.T, proxy *url.URL, target string) (ended func() bool) {
	t.Helper()
	c, r, status, err := connect(proxy, target)
	if err != nil || status != 200 {
		t.Fatalf("a tunnel: %d, %v", status, err)
	}
	t.Cleanup(func() { c.Close() })
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, r)
		over.Store(true)
	}()
	return over.Load
}

// quiet starts a server that keeps connections open and sends nothing, and returns
// its address.
func quiet(t *testing.T) string {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return listen(t, func(io.Writer) { <-done })
}

func TestWhatOneReplicaDoesHoldsAtTheOtherWithinASecond(t *testing.T) {
	t.Parallel()
	both := sharedReplicas(t)
	a, b := both[0], both[1]
	var account struct {
		AgentID   string `json:"agent_id"`
		APIKey    string `json:"api_key"`
		APISecret string `json:"api_secret"`
	}
	a.must(201, "POST", "/account/register", "", `{"name":"watched"}`).into(t, &account)
	key, silent := account.APIKey, quiet(t)

	ended, other := a.dynamic(key, "1"), a.dynamic(key, "1")
	proxy, still := b.proxyAt(key, ended), b.proxyAt(key, other)
	cut, kept := tunnel(t, proxy, silent), tunnel(t, still, silent)
	a.must(200, "POST", "/sessions/"+ended+"/terminate", key, "")
	b.promised(time.Second, "the tunnel of a terminated session is cut at the other replica", cut)
	b.promised(time.Second, "a terminated session is over at the other replica", func() bool {
		_, _, status, err := connect(proxy, silent)
		return err == nil && status == http.StatusGone
	})
	if kept() {
		t.Error("the tunnel of another session was cut")
	}

	first := b.exitOf(still.String())
	a.must(200, "POST", "/sessions/"+other+"/rotate", key, "")
	b.promised(time.Second, "a rotated session leaves by its new exit at the other replica", func() bool {
		return b.exitOf(still.String()) != first
	})

	var token struct {
		AccessToken string `json:"access_token"`
	}
	a.must(200, "POST", "/auth/token", "", fmt.Sprintf(`{"api_key":%q,"api_secret":%q}`, key, account.APISecret)).into(t, &token)
	bearer := []string{"Authorization", "Bearer " + token.AccessToken}
	b.must(200, "GET", "/account/info", "", "", bearer...)
	a.must(200, "POST", "/account/rotate-secret", key, "")
	b.promised(time.Second, "a token from before is refused at the other replica", func() bool {
		r, err := b.call(t.Context(), "GET", "/account/info", "", "", bearer...)
		return err == nil && r.status == 401 && r.code() == "AUTH_EXPIRED_TOKEN"
	})

	a.object("agent", "disable", account.AgentID, "--reason", "abuse")
	b.promised(time.Second, "the key of a disabled account is refused at the other replica", func() bool {
		r, err := b.call(t.Context(), "GET", "/billing/balance", key, "")
		return err == nil && r.code() == "ACCOUNT_DISABLED"
	})
	b.promised(time.Second, "the tunnels of a disabled account are cut at the other replica", kept)
	a.verify()
}

// download reads a tunnel to its end and adds what came.
func download(proxy *url.URL, target string, delivered *atomic.Int64) (status int, err error) {
	c, r, status, err := connect(proxy, target)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if status != 200 {
		return status, nil
	}
	_, err = io.Copy(counted{delivered}, r)
	return status, err
}

// downloadLater is like download for a client that tries again while the gateway answers
// that it cannot serve it now, as it does on a machine with too much to do.
func downloadLater(proxy *url.URL, target string, delivered *atomic.Int64) (status int, err error) {
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Second) {
		status, err = download(proxy, target, delivered)
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return status, err
		}
	}
}

type counted struct{ n *atomic.Int64 }

func (c counted) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// micro returns the price of a number of bytes of the fast product, in millionths.
func micro(bytes int64) *big.Rat { return big.NewRat(bytes*400_000/1_000_000_000, 1_000_000) }

func TestDownloadsOverTwoReplicasNeverExceedTheTraffic(t *testing.T) {
	t.Parallel()
	const limit, before, each = 100_000_000, 90_000_000, 1_000_000 // 100 MB is the least that is sold
	both := sharedReplicas(t)
	key, _ := both[0].register("cap")
	id := both[0].dynamic(key, "0.1")
	var delivered atomic.Int64
	if status, err := download(both[0].proxyAt(key, id), pour(t, before), &delivered); status != 200 || err != nil || delivered.Load() != before {
		t.Fatalf("the first download: %d, %v, %d bytes", status, err, delivered.Load())
	}
	target := pour(t, each)
	proxies := [2]*url.URL{both[0].proxyAt(key, id), both[1].proxyAt(key, id)}
	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for i := range *downloads {
		wg.Go(func() {
			status, err := download(proxies[i%2], target, &delivered)
			if err != nil {
				t.Errorf("a tunnel ended with %v; want an orderly end", err)
			}
			mu.Lock()
			answers[status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("answers %v, %d bytes of the last %d", answers, delivered.Load()-before, limit-before)
	if delivered.Load() > limit {
		t.Errorf("delivered %d bytes of %d", delivered.Load(), limit)
	}
	for status := range answers {
		if status != 200 && status != 402 && status != 503 {
			t.Errorf("answers by status: %v", answers)
		}
	}
	within(t, soon, "what was delivered is what was used", func() bool {
		used := both[1].session(key, id).Usage.Traffic
		return used.UsedBytes == delivered.Load() && used.DownloadBytes == delivered.Load()
	})
	both[0].must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	both[0].settled(key, id, delivered.Load(), delivered.Load())
	both[0].verify()
}

// inherits has the leases of replicas that are dead expire at once, in place of after an outage of the database. Those
// of this replica, the only one that lives, are given back first. One session at a time cannot deadlock with it.
func (s *service) inherits(sessions ...string) {
	s.t.Helper()
	within(s.t, soon, "the replica that lives has no lease", func() bool {
		_, metrics := s.page("/metrics")
		return strings.Contains(metrics, "\nagentproxy_gateway_leases_open 0\n")
	})
	for _, id := range sessions {
		s.sqlRun("UPDATE leases SET renewed_at = renewed_at - 3600000000 WHERE session_id = '" + id + "'")
	}
}

// settled checks that an ended session soon holds nothing and was charged for between
// least and most bytes.
func (s *service) settled(key, id string, least, most int64) {
	s.t.Helper()
	s.promised(reclaimed, "the settlement", func() bool { return s.session(key, id).Cost.Held == "0" })
	d := s.session(key, id)
	used := d.Usage.Traffic.UsedBytes
	if used < least || used > most {
		s.t.Errorf("%d bytes were used, want %d to %d", used, least, most)
	}
	if got := rat(s.t, d.Cost.Charged); got.Cmp(micro(used)) != 0 {
		s.t.Errorf("charged %s for %d bytes, want %s", d.Cost.Charged, used, micro(used).FloatString(6))
	}
}

func TestAReplicaThatDiesChargesNothingThatItDidNotDeliver(t *testing.T) {
	t.Parallel()
	const each = 4_000_000
	both := replicas(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", outage)
	key, _ := both[0].register("torn")
	id := both[0].dynamic(key, "1")
	target, goOn := halves(t, each)
	proxies := [2]*url.URL{both[0].proxyAt(key, id), both[1].proxyAt(key, id)}
	var delivered [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range *downloads {
		wg.Go(func() {
			status, err := downloadLater(proxies[i%2], target, &delivered[i%2])
			if i%2 == 1 && (status != 200 || err != nil) {
				t.Errorf("at the replica that lives: %d, %v", status, err)
			}
		})
	}
	within(t, soon, "the downloads run", func() bool {
		return delivered[0].Load() > each*int64(*downloads)/6 && delivered[1].Load() > each*int64(*downloads)/6
	})
	both[0].kill()
	died := time.Now()
	goOn()
	wg.Wait()
	both[1].must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	both[1].inherits(id)
	total := delivered[0].Load() + delivered[1].Load()
	both[1].settled(key, id, delivered[1].Load(), total)
	t.Logf("delivered %d and %d; charged for %d; settled %v after the death", delivered[0].Load(), delivered[1].Load(),
		both[1].session(key, id).Usage.Traffic.UsedBytes, time.Since(died).Round(time.Millisecond))
	if want := int64(*downloads / 2 * each); delivered[1].Load() != want {
		t.Errorf("the replica that lives delivered %d bytes, want %d", delivered[1].Load(), want)
	}
	both[1].verify()
	both[0].start()
}

// halves starts a server that sends half of a number of bytes on each connection, and the other half when the
// returned function was called.
func halves(t *testing.T, bytes int) (address string, goOn func()) {
	t.Helper()
	gate := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(goOn)
	return listen(t, func(w io.Writer) {
		if _, err := w.Write(make([]byte, bytes/2)); err == nil {
			<-gate
			_, _ = w.Write(make([]byte, bytes-bytes/2))
		}
	}), goOn
}

// pay sends a transfer.
func (s *service) pay(wallet, amount string) {
	s.t.Helper()
	if out, err := s.done("devchain", "send", "--to", wallet, "--amount", amount); err != nil {
		s.t.Errorf("devchain send: %v\n%s", err, out)
	}
}

// TestReplicasCreditEveryTransferOnce lets two replicas watch one chain, and
// kills one of them in the middle.
func TestReplicasCreditEveryTransferOnce(t *testing.T) {
	t.Parallel()
	const payers = 4
	both := replicas(t, "AGENTPROXY_DEVCHAIN_BLOCK_MS=200", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	each := *transfers / payers
	keys, orders := make([]string, payers), make([]orderData, payers)
	for i := range payers {
		keys[i], _ = both[i%2].register(fmt.Sprint("payer ", i))
		orders[i] = both[i%2].recharge(keys[i], fmt.Sprint(5*each))
	}
	for n := range each {
		var wg sync.WaitGroup
		for _, o := range orders {
			wg.Go(func() {
				both[1].pay(o.Wallet, "5")
			})
		}
		wg.Wait()
		switch n {
		case each / 2:
			both[0].kill()
		case each/2 + 2:
			both[0].start()
		}
	}
	if both[0].cmd == nil {
		both[0].start()
	}
	for i, key := range keys {
		s := both[i%2]
		within(t, soon, "an order is paid", func() bool { return s.order(key, orders[i].OrderID).Status == "paid" })
		paid := s.order(key, orders[i].OrderID)
		if received := fmt.Sprint(5 * each); paid.Received.String() != received || s.balance(key) != fmt.Sprint(10+5*each) || s.count(key, "recharge") != each {
			t.Errorf("received %s with a balance of %s by %d entries, want %s, %d and %d", paid.Received, s.balance(key),
				s.count(key, "recharge"), received, 10+5*each, each)
		}
	}
	if got := both[0].object("recharge", "audit"); got["differences"] != 0.0 {
		t.Errorf("recharge audit: %v", got)
	}
	both[1].verify()
}

// TestReplicasThatDieLoseNothing kills replicas while agents create, use, rotate
// and terminate at both.
func TestReplicasThatDieLoseNothing(t *testing.T) {
	t.Parallel()
	moments := campaign.Rand(t, 3)
	both := replicas(t, "AGENTPROXY_TRIAL_BALANCE=100000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0", "AGENTPROXY_SESSION_LIMIT=0", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", outage)
	target := pour(t, 300_000)
	keys, seen := make([]string, 4), make([]*answered, 4)
	for i := range keys {
		keys[i], _ = both[0].register(fmt.Sprint("replica ", i))
		seen[i] = &answered{sessions: map[string]string{}, rotations: map[string]int{}, terminated: map[string]bool{}}
	}
	sessions := 0
	for round := range *kills {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() { both[i%2].trouble(ctx, key, fmt.Sprint(round, "-", i), seen[i]) })
			wg.Go(func() { both[(i+1)%2].use(ctx, key, target) })
		}
		victim := both[moments.IntN(2)]
		killAfter(t, victim, seen, 8+moments.IntN(40))
		cancel()
		wg.Wait()
		victim.start()
		if round%10 == 9 || round == *kills-1 {
			for i, key := range keys {
				sessions += len(seen[i].sessions)
				both[round%2].holdsTrue(key, seen[i], round)
			}
			both[round%2].verify()
		}
		if t.Failed() {
			return
		}
	}
	for _, key := range keys {
		within(t, soon, "nothing is stuck", func() bool { return len(both[0].stuck(key)) == 0 })
	}
	both[1].verify()
	t.Logf("%d kills, %d sessions", *kills, sessions)
}

// use sends traffic through the agent's newest session until the service is gone.
func (s *service) use(ctx context.Context, key, target string) {
	for ctx.Err() == nil {
		var list struct{ Items []apiclient.Session }
		r, err := s.call(ctx, "GET", "/sessions?status=active&page_size=1", key, "")
		if err != nil || json.Unmarshal(r.Data, &list) != nil {
			return
		}
		if len(list.Items) == 0 || list.Items[0].Proxy == nil {
			continue
		}
		proxy, err := url.Parse(list.Items[0].Proxy.HTTPURL)
		if err != nil {
			return
		}
		proxy.Host = s.gateway
		var n atomic.Int64
		if _, err := download(proxy, target, &n); err != nil {
			return
		}
	}
}

// stuck returns the sessions of an agent that are still creating, and those that
// ended and still hold money.
func (s *service) stuck(key string) (ids []string) {
	s.t.Helper()
	for page := 1; ; page++ {
		var list struct{ Items []apiclient.Session }
		s.must(200, "GET", fmt.Sprintf("/sessions?page=%d&page_size=100", page), key, "").into(s.t, &list)
		for _, d := range list.Items {
			if d.Status == "creating" || d.Status != "active" && d.Cost.Held != "0" {
				ids = append(ids, d.SessionID+" is "+string(d.Status)+" and holds "+d.Cost.Held.String())
			}
		}
		if len(list.Items) < 100 {
			return ids
		}
	}
}
