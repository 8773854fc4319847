package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
)

// failover is how a primary is lost and found to be lost.
type failover struct {
	sync     bool          // the standby is synchronous
	cut      bool          // and it no longer receives what is committed
	hang     bool          // the primary stops to answer and closes no connection, instead of ending
	detected time.Duration // after which the standby is promoted
	back     bool          // the old primary is started again as it was
	restart  bool          // the primary itself is started again, and no standby is promoted
}

func (f failover) String() string {
	name := map[bool]string{true: "sync", false: "async"}[f.sync]
	for word, is := range map[string]bool{"cut": f.cut, "hang": f.hang, "back": f.back, "restart": f.restart} {
		if is {
			name += "-" + word
		}
	}
	return name + "-" + f.detected.String()
}

// failovers are those of the table in docs/high-availability.md. The first are those of each run.
var failovers = []failover{
	{sync: true},
	{cut: true},
	{restart: true},
	{sync: true, hang: true},
	{back: true},

	{sync: true, detected: 2 * time.Second},
	{detected: 2 * time.Second},
	{sync: true, hang: true, detected: 2 * time.Second},
	{hang: true, detected: 2 * time.Second},
	{cut: true, detected: 2 * time.Second},
	{back: true, detected: 2 * time.Second},
	{sync: true, detected: 20 * time.Second},
	{sync: true, hang: true, detected: 20 * time.Second},
	{restart: true, detected: 20 * time.Second},
	{sync: true, detected: 60 * time.Second},
}

// TestFailoversLoseNothing has two replicas buy, read and relay while their database is lost. With a synchronous
// standby everything that was answered is there afterwards, without one what is missing is noticed. No key buys
// twice, and no byte is relayed without being charged.
func TestFailoversLoseNothing(t *testing.T) {
	t.Parallel()
	for _, f := range failovers[:campaign.Rounds(2, len(failovers))] {
		t.Run(f.String(), func(t *testing.T) {
			failOver(t, f)
		})
	}
}

func failOver(t *testing.T, f failover) {
	first := pg.Start(t)
	database := first.Database(t)
	second := first.Standby(t)
	u, err := url.Parse(database)
	ok(t, err)
	either := first.Either(second, strings.TrimPrefix(u.Path, "/"))
	if f.hang { // else a server that does not answer refuses connections
		either = pg.With(either, "connect_timeout", "2")
	}
	if campaign.Rounds(0, 1) == 1 { // the bounds of a service, which a busy machine may not keep
		for _, name := range []string{"connect_timeout", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
			either = pg.With(either, name, "")
		}
	}
	synchronous(t, first, database, f.sync)
	env := append(onPostgres(either), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_TRIAL_BALANCE=100000",
		"AGENTPROXY_TRIAL_DAILY_TOTAL=0", "AGENTPROXY_SESSION_LIMIT=0")
	both := [2]*service{serve(t, env...), serve(t, env...)}
	c := newClients(t, both)
	c.run()
	c.succeeds("before", 3)
	if f.cut {
		second.Execute(t, "ALTER SYSTEM SET primary_conninfo = ''")
		second.Execute(t, "SELECT pg_reload_conf()")
		within(t, soon, "the standby is cut off", func() bool {
			return run(t, first.URL("postgres"), "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_replication)")
		})
		c.succeeds("while the standby is cut off", 3)
	}
	c.lost()
	switch {
	case f.hang:
		first.Freeze(t)
	case f.restart:
		ok(t, first.Stop("fast"))
	default:
		ok(t, first.Stop("immediate"))
	}
	c.relays("without a database")
	if f.detected > 0 {
		<-time.After(f.detected)
	}
	if f.restart {
		ok(t, first.Begin())
	} else {
		ok(t, second.Promote())
	}
	took := time.Since(c.began)
	c.returned()
	if f.back {
		ok(t, first.Begin())
	}
	c.succeeds("after", 10)
	c.stop()
	t.Logf("%v: back after %.1f s; the longest gaps in seconds: %s; calls went on after it within: %s", f, took.Seconds(),
		c.seconds(c.gap), c.seconds(c.first))
	c.check(f)
}

// synchronous has commits wait for the standby, or waits until that follows.
func synchronous(t *testing.T, first *pg.Server, database string, sync bool) {
	t.Helper()
	state := "async"
	if sync {
		first.Execute(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
		first.Execute(t, "SELECT pg_reload_conf()")
		state = "sync"
	}
	within(t, soon, "the standby follows", func() bool {
		return run(t, first.URL("postgres"), "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+state+"'")
	})
}

// clients are those of two replicas.
type clients struct {
	t    *testing.T
	both [2]*service
	key  string
	id   string // a session that relays

	cancel    context.CancelFunc
	wg        sync.WaitGroup
	began     time.Time // when the database was lost
	delivered atomic.Int64
	sent      atomic.Int64
	pause     context.CancelFunc // ends what the target sends

	mu     sync.Mutex
	done   map[string]int           // successes by kind and replica
	since  map[string]time.Time     // the last of them
	gap    map[string]time.Duration // the longest time between two of them
	back   time.Time                // when the database was back, and
	first  map[string]time.Duration // how long after that the first success was
	bought map[string]string        // what was acknowledged, by key
	failed map[string]error         // the last failures, by kind
}

func newClients(t *testing.T, both [2]*service) *clients {
	c := &clients{t: t, both: both, done: map[string]int{}, since: map[string]time.Time{}, gap: map[string]time.Duration{},
		first: map[string]time.Duration{}, bought: map[string]string{}, failed: map[string]error{}}
	c.key, _ = both[0].register("failover")
	c.id = both[0].dynamic(c.key, "1")
	return c
}

// did notes a success.
func (c *clients) did(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if last, ok := c.since[kind]; ok {
		c.gap[kind] = max(c.gap[kind], now.Sub(last))
	}
	if _, ok := c.first[kind]; !ok && !c.back.IsZero() {
		c.first[kind] = now.Sub(c.back)
	}
	c.since[kind], c.done[kind] = now, c.done[kind]+1
}

// The tunnel relays a piece every pieceEvery: a lease, 256 KiB at least, is given back while it is not used, and lasts
// for a minute so.
const (
	piece      = 400
	pieceEvery = 100 * time.Millisecond
)

// arrival notes what arrives by the tunnel.
type arrival struct{ *clients }

func (a arrival) Write(p []byte) (int, error) {
	a.delivered.Add(int64(len(p)))
	a.did("tunnel")
	return len(p), nil
}

func (c *clients) run() {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.cancel = cancel
	target, step := stepwise(c.t, piece, 100_000)
	proxy := c.both[1].proxyAt(c.key, c.id)
	sending, pause := context.WithCancel(ctx)
	var sender sync.WaitGroup
	c.pause = func() { pause(); sender.Wait() }
	sender.Go(func() {
		tick := time.NewTicker(pieceEvery)
		defer tick.Stop()
		for sending.Err() == nil {
			step()
			c.sent.Add(piece)
			select {
			case <-tick.C:
			case <-sending.Done():
			}
		}
	})
	c.wg.Go(func() {
		conn, r, status, err := connect(proxy, target)
		if err != nil || status != http.StatusOK {
			c.t.Errorf("the tunnel: %d, %v", status, err)
			return
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		if _, err := io.Copy(arrival{c}, r); err != nil && ctx.Err() == nil {
			c.t.Errorf("the tunnel ended: %v", err)
		}
	})
	for i, s := range c.both {
		c.repeat(ctx, fmt.Sprint("buy ", i), func(n int) error {
			key := fmt.Sprint("k", i, "-", n)
			id, err := c.buy(ctx, s, key)
			if err == nil {
				c.mu.Lock()
				c.bought[key] = id
				c.mu.Unlock()
			}
			return err
		})
		c.repeat(ctx, fmt.Sprint("read ", i), func(int) error {
			r, err := s.call(ctx, "GET", "/sessions/"+c.id, c.key, "")
			if err == nil && r.status != http.StatusOK {
				err = errors.New(string(r.body))
			}
			return err
		})
	}
}

// repeat does something until ctx ends. What fails is tried again a little later.
func (c *clients) repeat(ctx context.Context, kind string, do func(n int) error) {
	c.wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := do(n); err == nil {
				c.did(kind)
			} else {
				c.mu.Lock()
				c.failed[kind] = err
				c.mu.Unlock()
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

var errNotBought = errors.New("not bought")

func (c *clients) buy(ctx context.Context, s *service, key string) (id string, err error) {
	r, err := s.call(ctx, "POST", "/sessions", c.key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`,
		"Idempotency-Key", key)
	if err != nil || r.status != http.StatusCreated {
		return "", errors.Join(errNotBought, err, errors.New(string(r.body)))
	}
	var d apiclient.Session
	r.into(c.t, &d)
	return d.SessionID, nil
}

// succeeds waits until everything succeeded a number of times more.
func (c *clients) succeeds(when string, times int) {
	c.t.Helper()
	c.mu.Lock()
	before := map[string]int{}
	for kind, n := range c.done {
		before[kind] = n
	}
	c.mu.Unlock()
	defer func() {
		if c.t.Failed() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.t.Logf("successes: %v; the last failures: %v", c.done, c.failed)
		}
	}()
	within(c.t, soon, when+" everything succeeds", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, kind := range []string{"buy 0", "buy 1", "read 0", "read 1"} {
			if c.done[kind] < before[kind]+times {
				return false
			}
		}
		return true
	})
	c.relays(when)
}

// relays waits until the tunnel has relayed some pieces more.
func (c *clients) relays(when string) {
	c.t.Helper()
	before := c.delivered.Load()
	within(c.t, soon, when+" the tunnel goes on", func() bool { return c.delivered.Load() >= before+3*piece })
}

// lost notes the time at which the database is lost.
func (c *clients) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = time.Now()
	clear(c.gap)
}

// returned notes the time at which the database is back.
func (c *clients) returned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back = time.Now()
}

// stop ends the clients, the tunnel once everything has arrived that was sent.
func (c *clients) stop() {
	c.pause()
	within(c.t, soon, "everything that was sent arrives", func() bool { return c.delivered.Load() == c.sent.Load() })
	c.cancel()
	c.wg.Wait()
}

func (c *clients) seconds(of map[string]time.Duration) (text string) {
	for _, kind := range []string{"buy 0", "buy 1", "read 0", "read 1", "tunnel"} {
		text += fmt.Sprintf("%s %.1f, ", kind, of[kind].Seconds())
	}
	return strings.TrimSuffix(text, ", ")
}

// check compares what was answered with what the database has.
func (c *clients) check(f failover) {
	t := c.t
	t.Helper()
	missing, other := 0, 0
	for key, id := range c.bought {
		r, err := c.both[0].patient(t.Context(), "GET", "/sessions/"+id, c.key, "")
		switch {
		case err != nil:
			t.Fatal(err)
		case r.status == http.StatusNotFound:
			missing++
			continue
		}
		var d apiclient.Session
		c.both[1].must(201, "POST", "/sessions", c.key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`,
			"Idempotency-Key", key).into(t, &d)
		if d.SessionID != id {
			other++
		}
	}
	noticed := 0.0
	for _, s := range c.both {
		_, text := s.page("/metrics")
		noticed += seriesOf(text, "agentproxy_database_lossy_promotions_total")
		if lost := seriesOf(text, "agentproxy_gateway_leases_lost_total"); lost != 0 && !f.cut {
			t.Errorf("%v leases were lost", lost)
		}
	}
	t.Logf("%d purchases were answered, %d are missing; %v replicas noticed", len(c.bought), missing, noticed)
	if missing > 0 && (f.sync || f.restart) || other > 0 {
		t.Errorf("%d are missing, and %d keys bought another session", missing, other)
	}
	if f.cut && (noticed == 0 || missing == 0) || (f.sync || f.restart) && noticed > 0 {
		t.Errorf("%d purchases are missing; %v replicas noticed", missing, noticed)
		for _, s := range c.both {
			for line := range strings.Lines(s.log.String()) {
				if strings.Contains(line, "a failover of the database lost commits") {
					t.Log(line)
				}
			}
		}
	}
	if !f.cut {
		within(t, soon, "what was relayed is what was used", func() bool {
			return c.both[0].session(c.key, c.id).Usage.Traffic.UsedBytes == c.delivered.Load()
		})
	}
	c.both[0].verify()
}

// seriesOf returns the value of a series without labels; 0 if there is none.
func seriesOf(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
