package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"agentproxy/adapters/gateway"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/freeport"
)

// scraped is what a registry shows, by the name of the series with its labels.
type scraped map[string]*dto.Metric

func scrape(t testing.TB, r *prometheus.Registry) scraped {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	s := scraped{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += "," + l.GetName() + "=" + l.GetValue()
			}
			s[name] = m
		}
	}
	return s
}

// value is a counter's or a gauge's; -1 when there is no such series.
func (s scraped) value(name string) float64 {
	switch m := s[name]; {
	case m == nil:
		return -1
	case m.Counter != nil:
		return m.Counter.GetValue()
	default:
		return m.Gauge.GetValue()
	}
}

// requests lists the outcomes of a protocol that were counted.
func (s scraped) requests(protocol string) map[string]int {
	found := map[string]int{}
	for name := range s {
		rest, ok := strings.CutPrefix(name, "agentproxy_gateway_requests_total,outcome=")
		outcome, its, _ := strings.Cut(rest, ",protocol=")
		if n := s.value(name); ok && its == protocol && n > 0 {
			found[outcome] = int(n)
		}
	}
	return found
}

// metered is begin with a registry.
func metered(t testing.TB, b *fakeCore, edit func(*setup)) (*world, *prometheus.Registry) {
	r := prometheus.NewPedanticRegistry()
	return begin(t, b, func(c *setup) {
		c.Metrics = r
		if edit != nil {
			edit(c)
		}
	}), r
}

// over tries a tunnel by SOCKS5.
func (w *world) over(user, password, target string) {
	if c, err := w.socks(user, password).Dial("tcp", target); err == nil {
		w.t.Cleanup(func() { _ = c.Close() })
	}
}

// counted waits for the outcomes of a protocol: a client can have its answer
// before it is counted.
func counted(t *testing.T, r *prometheus.Registry, protocol string, want map[string]int) {
	t.Helper()
	var got map[string]int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if got = scrape(t, r).requests(protocol); maps.Equal(got, want) {
			return
		}
	}
	t.Errorf("%s: %v, want %v", protocol, got, want)
}

func TestRequestsAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), func(c *setup) {
		lingers(c)
		c.Own = []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.2")}
		c.Resolver = resolver{"name.test": {"127.0.0.1"}}
	})
	id, target := w.add(1, 0, "127.0.0.2"), echo(t)
	web := listen(t)
	go func() {
		_ = http.Serve(web, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "hello") }))
	}()
	auth := basic(user(id, 0), password(id))
	closed := freeport.Address(t)

	w.connect(id, target)
	w.connectAs(w.dial(), "", target)
	w.connectAs(w.dial(), basic(user(id, 0), "wrong"), target)
	w.connectAs(w.dial(), auth, "192.0.2.1:25")
	w.connectAs(w.dial(), auth, closed)
	w.connectAs(w.dial(), auth, "nowhere.test:80")
	counted(t, r, "connect", map[string]int{"ok": 1, "proxy_auth_required": 2, "target_refused": 1, "target_unreachable": 2})

	client := w.client(id)
	for range 3 {
		res, err := client.Get("http://" + web.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	c := w.dial()
	fmt.Fprint(c, "NONSENSE\r\n\r\n")
	response(t, c)
	c = w.dial()
	fmt.Fprint(c, "GET http://x/ HTTP/1.1\r\nX: "+strings.Repeat("x", 40<<10)+"\r\n\r\n")
	response(t, c)
	counted(t, r, "http", map[string]int{"ok": 3, "bad_request": 1, "head_too_large": 1})

	_, port, _ := net.SplitHostPort(target)
	w.over(user(id, 0), password(id), "name.test:"+port)
	w.over(user(id, 0), "wrong", "name.test:80")
	w.over(user(id, 0), password(id), "nowhere.test:80")
	c = w.dial()
	_, _ = c.Write([]byte{5, 1, 0}) // no password on offer
	_, _ = io.ReadFull(c, make([]byte, 2))
	w.change(id, func(r *traffic.Route) { r.Status = session.Expired })
	w.Changed(id)
	w.over(user(id, 0), password(id), "name.test:80")
	counted(t, r, "socks5", map[string]int{"ok": 1, "proxy_auth_required": 2, "target_unreachable": 1, "session_expired": 1})

	for outcome, want := range map[string]float64{"ok": 3, "failed": 1} {
		if got := scrape(t, r).value("agentproxy_gateway_exit_dials_total,exit=127.0.0.2,outcome=" + outcome); got != want {
			t.Errorf("%v dials of the exit are %s, want %v", got, outcome, want)
		}
	}
	if n := scrape(t, r)["agentproxy_gateway_dial_seconds"].Histogram.GetSampleCount(); n != 3 {
		t.Errorf("%d dials timed, want 3: two tunnels and a kept connection", n)
	}
}

func TestTruncatedResponseIsCounted(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), nil)
	l := listen(t)
	go serve(l, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1<<10))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
	})
	res, err := w.client(w.add(1, 0)).Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	counted(t, r, "http", map[string]int{"cut": 1})
}

func TestTunnelsBytesAndLeasesAreMeasured(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), nil)
	id, target := w.add(1, 0), newCounting(t)
	const up, down = 3 << 20, 5 << 20
	c := w.connect(id, target.addr())
	s := scrape(t, r)
	for name, want := range map[string]float64{"tunnels": 1, "leases_open": 1, "sessions_cached": 1, "lease_waits_total": 1} {
		if got := s.value("agentproxy_gateway_" + name); got != want {
			t.Errorf("%s is %v with one open tunnel, want %v", name, got, want)
		}
	}
	go func() {
		_, _ = c.Write(order(up, down))
		_, _ = io.CopyN(c, zeros{}, up)
	}()
	if _, err := io.CopyN(io.Discard, c, down); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the bytes", func() bool {
		s := scrape(t, r)
		return s.value("agentproxy_gateway_bytes_total,direction=up") == up+16 &&
			s.value("agentproxy_gateway_bytes_total,direction=down") == down
	})
	_ = c.Close()
	usage := w.settled(id)
	if usage.Up != up+16 || usage.Down != down {
		t.Errorf("the core counted %d and %d", usage.Up, usage.Down)
	}
	waitFor(t, "the end of tunnel and lease", func() bool {
		s := scrape(t, r)
		return s.value("agentproxy_gateway_tunnels") == 0 && s.value("agentproxy_gateway_leases_open") == 0
	})
}

// TestLabelsAreFixed sends what a stranger and an agent can make up, and looks
// for any of it in the labels.
func TestLabelsAreFixed(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), func(c *setup) { c.Resolver = resolver{} })
	before := scrape(t, r)
	target := echo(t)
	var ids []string
	for n := range 30 {
		id := w.add(n, 0)
		ids = append(ids, id)
		auth := basic(user(id, 0), password(id))
		_ = w.connect(id, target).Close()
		w.connectAs(w.dial(), auth, fmt.Sprintf("host%d.secret.test:443", n))
		w.connectAs(w.dial(), basic(fmt.Sprintf("intruder%d", n), "x"), target)
		c := w.dial()
		fmt.Fprintf(c, "METHOD%d http://host%d.secret.test/%d HTTP/1.1\r\nHost: x\r\n%s\r\n", n, n, n, auth)
		response(t, c)
		c = w.dial()
		fmt.Fprintf(c, "garbage%d\xff\r\n\r\n", n)
		response(t, c)
		w.over(fmt.Sprintf("intruder%d", n), "x", "secret.test:80")
		w.over(user(id, 0), password(id), fmt.Sprintf("secret.test:%d", n+1))
	}
	after := scrape(t, r)
	if len(before) != len(after) || len(after) > 140 {
		t.Errorf("%d series, then %d", len(before), len(after))
	}
	known := map[string][]string{"protocol": {"connect", "http", "socks5"}, "direction": {"up", "down"}, "listener": {"gateway"},
		"exit": {"embedded", "other", ""}, "account": {"trial", "funded"}}
	for name, m := range after {
		if before[name] == nil {
			t.Errorf("%s came with the traffic", name)
		}
		for _, l := range m.Label {
			if v := l.GetValue(); l.GetName() != "outcome" && !slices.Contains(known[l.GetName()], v) {
				t.Errorf("%s has the value %q", l.GetName(), v)
			}
		}
		for _, told := range append(ids, "secret", "intruder", "METHOD", "garbage", "127.0.0.1", user(ids[0], 0)) {
			if strings.Contains(strings.ToLower(name), strings.ToLower(told)) {
				t.Errorf("the series %s reveals %q", name, told)
			}
		}
	}
	for _, p := range known["protocol"] {
		if after.requests(p)["other"] > 0 {
			t.Errorf("%s: a refusal has no outcome of its own: %v", p, after.requests(p))
		}
	}
}

// Every code that a client can get is a label from the start.
func TestEveryCodeIsAnOutcome(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	begin(t, newCore(t), func(c *setup) { c.Metrics = r })
	s := scrape(t, r)
	for c := 1; c < refusal.Codes; c++ {
		label := strings.ToLower(refusal.Code(c).String())
		if s.value("agentproxy_gateway_requests_total,outcome="+label+",protocol=http") < 0 {
			t.Errorf("%s is not among the outcomes", label)
		}
	}
	for _, label := range []string{"ok", "cut", "other"} {
		if s.value("agentproxy_gateway_requests_total,outcome="+label+",protocol=http") < 0 {
			t.Errorf("%s is not among the outcomes", label)
		}
	}
}

func TestMetricsLiveAsLongAsTheGateway(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	cfg, live := gateway.Config{Addr: "127.0.0.1:0", Key: key}, deps(newCore(t))
	live.Metrics = r
	g := gateway.New(cfg, live)
	if n := len(scrape(t, r)); n != 0 {
		t.Errorf("%d series before the start", n)
	}
	if err := g.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	var taken prometheus.AlreadyRegisteredError
	second := gateway.New(cfg, live)
	if err := second.Start(context.Background()); !errors.As(err, &taken) {
		t.Errorf("a second gateway on the same registry: %v", err)
	}
	_ = second.Stop(context.Background())
	if len(scrape(t, r)) == 0 {
		t.Error("no series while the gateway runs")
	}
	_ = g.Stop(context.Background())
	if n := len(scrape(t, r)); n != 0 {
		t.Errorf("%d series after the stop", n)
	}
}

func TestSeriesAreReadableUnderLoad(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), nil)
	target := echo(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				scrape(t, r)
			}
		}
	}()
	for n := range 200 {
		_ = w.connect(w.add(n, 0), target).Close()
	}
	close(stop)
	<-done
}
