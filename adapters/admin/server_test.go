package admin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"agentproxy/adapters/admin"
	"agentproxy/test/syncbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discard = slog.New(slog.DiscardHandler)

// begin starts a server on a free port.
func begin(t *testing.T, cfg admin.Config, log *slog.Logger, checks ...admin.Check) (*admin.Server, *prometheus.Registry) {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	if cfg.CheckTimeout == 0 {
		cfg.CheckTimeout = 2 * time.Minute
	}
	s, r := create(t, cfg, log, checks...)
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// create returns a server without a listener, for tests whose clock is set.
func create(t *testing.T, cfg admin.Config, log *slog.Logger, checks ...admin.Check) (*admin.Server, *prometheus.Registry) {
	t.Helper()
	r := admin.NewRegistry()
	if cfg.Gate == nil {
		cfg.Gate = gate()
	}
	s, err := admin.New(cfg, checks, r, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

// get requests a page as the operator, over a connection of its own, or of the handler if the server
// does not listen.
func get(t *testing.T, s *admin.Server, path string) (int, string) {
	t.Helper()
	if s.Addr() == nil {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	req, err := http.NewRequest("GET", "http://"+s.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// expect compares a whole answer.
func expect(t *testing.T, s *admin.Server, path string, status int, body string) {
	t.Helper()
	if code, got := get(t, s, path); code != status || got != body {
		t.Errorf("%s: %d %q, want %d %q", path, code, got, status, body)
	}
}

func check(name string, err error) admin.Check {
	return admin.Check{Name: name, Run: func(context.Context) error { return err }}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s, _ := begin(t, admin.Config{}, discard)
	expect(t, s, "/healthz", 200, "ok\n")
	expect(t, s, "/readyz", 200, "ok\n")
	code, body := get(t, s, "/metrics")
	for _, series := range []string{"go_goroutines ", "process_open_fds "} {
		if code != 200 || !strings.Contains(body, "\n"+series) {
			t.Errorf("/metrics: %d without %s", code, series)
		}
	}
	for _, path := range []string{"/", "/metrics/x", "/v1/health", "/debug/pprof/", "/debug/pprof/heap"} {
		if code, _ := get(t, s, path); code != 404 {
			t.Errorf("%s: %d, want 404", path, code)
		}
	}
	res, err := http.Post("http://"+s.Addr().String()+"/healthz", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != 401 {
		t.Errorf("POST: %d", res.StatusCode)
	}
}

func TestProfilesAreServedOnlyIfWanted(t *testing.T) {
	t.Parallel()
	s, _ := begin(t, admin.Config{Pprof: true}, discard)
	if code, body := get(t, s, "/debug/pprof/"); code != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("%d %q", code, body)
	}
}

func TestATakenPortFailsTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := admin.New(admin.Config{Gate: gate(), Addr: l.Addr().String()}, nil, admin.NewRegistry(), discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.Start(context.Background()) == nil {
		t.Error("started on a taken port")
	}
	if s.Addr() != nil {
		t.Errorf("listens on %v", s.Addr())
	}
	_ = s.Stop(context.Background())
}

func TestAHugeHeadIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := begin(t, admin.Config{}, discard)
	req, _ := http.NewRequest("GET", "http://"+s.Addr().String()+"/healthz", nil)
	req.Header.Set("X", strings.Repeat("x", 64<<10))
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return // cut while it was still sending
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	secret := "postgres://agentproxy:hunter2@db.internal/agentproxy"
	for _, c := range []struct {
		name   string
		checks []admin.Check
		status int
		body   string
	}{
		{"all hold, by name", []admin.Check{check("migrations", nil), check("database", nil)}, 200, "database ok\nmigrations ok\n"},
		{"one fails", []admin.Check{check("leader", errors.New("dial "+secret)), check("database", nil)}, 503,
			"database ok\nleader failed: error; see the log\n"},
		{"a reason is shown", []admin.Check{check("leader", errors.Join(errors.New(secret), admin.Reason("no work for 2m\nforged ok")))},
			503, "leader failed: no work for 2m forged ok\n"},
		{"a reason is short", []admin.Check{check("leader", admin.Reason(strings.Repeat("€", 100)))}, 503,
			"leader failed: " + strings.Repeat("€", 40) + "\n"},
		{"what all replicas share is shown", []admin.Check{{Name: "leader", Shared: true,
			Run: func(context.Context) error { return admin.Reason("no work for 2m") }}, check("database", nil)}, 200,
			"database ok\nleader failed: no work for 2m\n"},
		{"a panic is an error", []admin.Check{{Name: "broken", Run: func(context.Context) error { panic(secret) }}}, 503,
			"broken failed: error; see the log\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := begin(t, admin.Config{}, discard, c.checks...)
			expect(t, s, "/readyz", c.status, c.body)
			expect(t, s, "/healthz", 200, "ok\n")
			series := map[int]string{200: "\nagentproxy_ready 1\n", 503: "\nagentproxy_ready 0\n"}[c.status]
			if _, text := get(t, s, "/metrics"); !strings.Contains(text, series) {
				t.Errorf("the metrics have no %q", series)
			}
		})
	}
}

func TestChecksRunTogetherAndAreCut(t *testing.T) { synctest.Test(t, checksRunTogetherAndAreCut) }

func checksRunTogetherAndAreCut(t *testing.T) {
	// Each waits for the other to begin: one after the other would not end in time.
	var both sync.WaitGroup
	both.Add(2)
	meets := func(context.Context) error { both.Done(); both.Wait(); return nil }
	minds := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	release := make(chan struct{})
	hangs := func(context.Context) error { <-release; return nil }
	const limit = time.Second
	s, _ := create(t, admin.Config{CheckTimeout: limit}, discard,
		admin.Check{Name: "a", Run: meets}, admin.Check{Name: "b", Run: minds}, admin.Check{Name: "c", Run: hangs}, admin.Check{Name: "d", Run: meets})
	began := time.Now()
	expect(t, s, "/readyz", 503, "a ok\nb failed: no answer in time\nc failed: no answer in time\nd ok\n")
	if took := time.Since(began); took != limit {
		t.Errorf("cut after %v", took)
	}
	close(release)
}

func TestCheckTimeoutIsTwoSeconds(t *testing.T) { synctest.Test(t, checkTimeoutIsTwoSeconds) }

func checkTimeoutIsTwoSeconds(t *testing.T) {
	deadline := make(chan time.Time, 1)
	s, _ := create(t, admin.Config{}, discard, admin.Check{Name: "a", Run: func(ctx context.Context) error {
		d, _ := ctx.Deadline()
		deadline <- d
		return nil
	}})
	began := time.Now()
	expect(t, s, "/readyz", 200, "a ok\n")
	if d := <-deadline; d.Sub(began) != 2*time.Second {
		t.Errorf("a check had %v from the request on", d.Sub(began))
	}
}

func TestACheckThatHangsIsNotStartedAgain(t *testing.T) {
	synctest.Test(t, aCheckThatHangsIsNotStartedAgain)
}

func aCheckThatHangsIsNotStartedAgain(t *testing.T) {
	var runs atomic.Int32
	release := make(chan struct{})
	s, _ := create(t, admin.Config{CheckTimeout: 20 * time.Millisecond}, discard,
		admin.Check{Name: "stuck", Run: func(context.Context) error { runs.Add(1); <-release; return nil }})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { expect(t, s, "/readyz", 503, "stuck failed: no answer in time\n") })
	}
	wg.Wait()
	if n := runs.Load(); n != 1 {
		t.Errorf("it runs %d times at once", n)
	}
	close(release)
	synctest.Wait()
	expect(t, s, "/readyz", 200, "stuck ok\n")
}

func TestOneLineIsLoggedForAnOutage(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	var out syncbuffer.Buffer
	s, _ := begin(t, admin.Config{}, slog.New(slog.NewTextHandler(&out, nil)), admin.Check{Name: "database",
		Run: func(context.Context) error {
			if fails.Load() {
				return errors.New("refused by 10.0.0.7")
			}
			return nil
		}})
	for range 3 {
		for _, down := range []bool{true, true, true, false, false} {
			fails.Store(down)
			get(t, s, "/readyz")
		}
	}
	if text := out.String(); strings.Count(text, "10.0.0.7") != 3 || strings.Count(text, "passes again") != 3 {
		t.Errorf("3 outages are logged as\n%s", text)
	}
}

func TestStopCancelsChecks(t *testing.T) {
	t.Parallel()
	began, gone := make(chan struct{}), make(chan struct{})
	s, err := admin.New(admin.Config{Gate: gate(), CheckTimeout: time.Hour, Addr: "127.0.0.1:0"}, []admin.Check{{Name: "slow",
		Run: func(ctx context.Context) error { close(began); <-ctx.Done(); close(gone); return ctx.Err() }}}, admin.NewRegistry(), discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := client.Get("http://" + s.Addr().String() + "/readyz"); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = s.Stop(ctx)
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the check still runs")
	}
}

func TestChecksHaveNames(t *testing.T) {
	t.Parallel()
	run := func(context.Context) error { return nil }
	for _, checks := range [][]admin.Check{{{Run: run}}, {{Name: "a"}}, {check("a", nil), check("a", nil)}, {check("service", nil)}} {
		if _, err := admin.New(admin.Config{Gate: gate()}, checks, admin.NewRegistry(), discard); err == nil {
			t.Errorf("%+v are taken", checks)
		}
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	var s *admin.Server
	var ready []string
	var stopped time.Time
	const drain = 20 * time.Millisecond
	ask := func(s *admin.Server) {
		_, body := get(t, s, "/readyz")
		ready = append(ready, body)
	}
	app := fxtest.New(t, fx.StartTimeout(2*time.Minute), fx.StopTimeout(2*time.Minute),
		fx.Supply(admin.Config{Gate: gate(), Addr: "127.0.0.1:0", DrainDelay: drain}, discard),
		admin.Module,
		admin.ProvideChecks(func() []admin.Check { return []admin.Check{check("a", nil)} }),
		admin.ProvideChecks(func() ([]admin.Check, error) { return []admin.Check{check("b", nil), check("c", nil)}, nil }),
		admin.ProvideGauges(func() []admin.Gauge {
			return []admin.Gauge{{Name: "agentproxy_test_one", Help: "One.", Read: func(context.Context) (float64, error) { return 1, nil }}}
		}),
		// A part that starts after the listener and stops before it.
		fx.Invoke(func(lc fx.Lifecycle, s *admin.Server) {
			lc.Append(fx.StartStopHook(func() { ask(s) }, func() { ask(s); stopped = time.Now() }))
		}),
		admin.Announce,
		fx.Populate(&s),
	)
	app.RequireStart()
	ask(s)
	if _, body := get(t, s, "/metrics"); !strings.Contains(body, "\nagentproxy_test_one 1\n") {
		t.Error("the gauge is missing")
	}
	began := time.Now()
	app.RequireStop()
	if waited := stopped.Sub(began); waited < drain {
		t.Errorf("the part before it was stopped after %v, want %v or more", waited, drain)
	}
	want := []string{"a ok\nb ok\nc ok\nservice failed: starting\n", "a ok\nb ok\nc ok\nservice ok\n", "a ok\nb ok\nc ok\nservice failed: stopping\n"}
	if strings.Join(ready, "|") != strings.Join(want, "|") {
		t.Errorf("readiness was %q, want %q", ready, want)
	}
}

func TestABadGaugeFailsTheStart(t *testing.T) {
	t.Parallel()
	app := fx.New(fx.NopLogger, fx.Supply(admin.Config{Gate: gate(), Addr: "127.0.0.1:0"}, discard), admin.Module,
		admin.ProvideGauges(func() []admin.Gauge { return []admin.Gauge{{Name: "drift"}} }))
	if app.Err() == nil {
		t.Error("a gauge without name and function is taken")
	}
}

func TestItIsNotReadyAtOnceAndStopsAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := create(t, admin.Config{DrainDelay: 5 * time.Second}, discard)
		s.Serving()
		began := time.Now()
		drained := make(chan time.Duration, 1)
		go func() {
			if err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			drained <- time.Since(began)
		}()
		synctest.Wait()
		if code, body := get(t, s, "/readyz"); code != 503 || body != "service failed: stopping\n" || time.Since(began) > 0 {
			t.Errorf("%d %q", code, body)
		}
		if took := <-drained; took != 5*time.Second {
			t.Errorf("it stops after %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if again := time.Now(); s.Drain(ctx) != nil || time.Since(again) > 0 {
			t.Error("it waits though the stop has no time left")
		}
	})
}
