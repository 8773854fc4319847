package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/admin"
	"agentproxy/test/syncbuffer"
)

func gauge(name string, read func(context.Context) (float64, error)) admin.Gauge {
	return admin.Gauge{Name: "agentproxy_" + name, Help: "A number.", Read: read}
}

// watch creates a server that shows gauges.
func watch(t *testing.T, cfg admin.Config, list ...admin.Gauge) *admin.Server {
	t.Helper()
	s, r := create(t, cfg, discard)
	if err := s.Register(r, list); err != nil {
		t.Fatal(err)
	}
	return s
}

// number returns a series of /metrics, or "" if it is missing.
func number(t *testing.T, s *admin.Server, name string) string {
	t.Helper()
	code, body := get(t, s, "/metrics")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	for _, line := range strings.Split(body, "\n") {
		if v, ok := strings.CutPrefix(line, "agentproxy_"+name+" "); ok {
			return v
		}
	}
	return ""
}

// counted returns a gauge that shows how often it was read.
func counted() admin.Gauge {
	var reads atomic.Int64
	return gauge("reads", func(context.Context) (float64, error) {
		time.Sleep(10 * time.Millisecond)
		return float64(reads.Add(1)), nil
	})
}

func TestScrapersShareARead(t *testing.T) { synctest.Test(t, scrapersShareARead) }

func scrapersShareARead(t *testing.T) {
	s := watch(t, admin.Config{ReadEvery: time.Hour}, counted())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if v := number(t, s, "reads"); v != "1" {
				t.Errorf("read %s times", v)
			}
		})
	}
	wg.Wait()
	for range 10 {
		if v := number(t, s, "reads"); v != "1" {
			t.Errorf("read %s times", v)
		}
	}
}

func TestAGaugeIsReadAgain(t *testing.T) { synctest.Test(t, aGaugeIsReadAgain) }

func aGaugeIsReadAgain(t *testing.T) {
	s := watch(t, admin.Config{ReadEvery: 20 * time.Millisecond}, counted())
	number(t, s, "reads")
	time.Sleep(30 * time.Millisecond)
	if v := number(t, s, "reads"); v != "2" {
		t.Errorf("read %s times after its period, want 2", v)
	}
}

func TestAGaugeThatFailsIsLeftOutAndCounted(t *testing.T) {
	synctest.Test(t, aGaugeThatFailsIsLeftOutAndCounted)
}

func aGaugeThatFailsIsLeftOutAndCounted(t *testing.T) {
	var reads atomic.Int64
	s := watch(t, admin.Config{ReadEvery: time.Hour, ReadTimeout: 200 * time.Millisecond},
		gauge("fails", func(context.Context) (float64, error) { reads.Add(1); return 7, errors.New("no such table") }),
		gauge("panics", func(context.Context) (float64, error) { panic("at the disco") }),
		gauge("waits", func(ctx context.Context) (float64, error) { <-ctx.Done(); return 7, ctx.Err() }),
		gauge("works", func(context.Context) (float64, error) { return 2.5, nil }))
	if v := number(t, s, "works"); v != "2.5" {
		t.Errorf("works is %q", v)
	}
	for _, name := range []string{"fails", "panics", "waits"} {
		if v := number(t, s, name); v != "" {
			t.Errorf("%s is shown as %s", name, v)
		}
	}
	// Each of the 5 scrapes leaves out three of four.
	if v, _ := strconv.Atoi(number(t, s, "scrape_errors_total")); v != 15 {
		t.Errorf("%d errors after 5 scrapes, want 15", v)
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("a failing gauge was read %d times in its period", n)
	}
}

func TestAFailureHidesTheOldValue(t *testing.T) { synctest.Test(t, aFailureHidesTheOldValue) }

func aFailureHidesTheOldValue(t *testing.T) {
	var fails atomic.Bool
	s := watch(t, admin.Config{ReadEvery: time.Nanosecond}, gauge("age", func(context.Context) (float64, error) {
		if fails.Load() {
			return 0, errors.New("gone")
		}
		return 3, nil
	}))
	for _, want := range []string{"3", "", "3"} {
		time.Sleep(time.Second)
		fails.Store(want == "")
		if v := number(t, s, "age"); v != want {
			t.Errorf("age is %q, want %q", v, want)
		}
	}
}

func TestGaugesThatHangDoNotHoldAScrape(t *testing.T) {
	synctest.Test(t, gaugesThatHangDoNotHoldAScrape)
}

func gaugesThatHangDoNotHoldAScrape(t *testing.T) {
	release := make(chan struct{})
	var running, most atomic.Int64
	var list []admin.Gauge
	for i := range 12 {
		list = append(list, gauge("stuck_"+strconv.Itoa(i), func(context.Context) (float64, error) {
			for n, old := running.Add(1), most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-release
			running.Add(-1)
			return 1, nil
		}))
	}
	const limit = 200 * time.Millisecond
	s := watch(t, admin.Config{ReadTimeout: limit}, list...)
	for range 4 {
		began := time.Now()
		if v := number(t, s, "scrape_errors_total"); v == "" {
			t.Error("no count of errors")
		}
		if took := time.Since(began); took != limit {
			t.Errorf("a scrape took %v, as if the reads waited for each other", took)
		}
	}
	if n := most.Load(); n > 4 {
		t.Errorf("%d reads hang at once", n)
	}
	close(release)
}

func TestAnOutageOfAGaugeIsLoggedOnce(t *testing.T) {
	synctest.Test(t, anOutageOfAGaugeIsLoggedOnce)
}

func anOutageOfAGaugeIsLoggedOnce(t *testing.T) {
	var out syncbuffer.Buffer
	s, r := create(t, admin.Config{ReadEvery: time.Nanosecond}, slog.New(slog.NewTextHandler(&out, nil)))
	if err := s.Register(r, []admin.Gauge{gauge("age", func(context.Context) (float64, error) { return 0, errors.New("gone") })}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		get(t, s, "/metrics")
		time.Sleep(time.Second)
	}
	if n := strings.Count(out.String(), "gone"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, out.String())
	}
}

func TestGaugesAreNamed(t *testing.T) {
	read := func(context.Context) (float64, error) { return 0, nil }
	good := admin.Gauge{Name: "agentproxy_a", Help: "A.", Read: read}
	for name, list := range map[string][]admin.Gauge{
		"a foreign name":                    {{Name: "a", Help: "A.", Read: read}},
		"a wrong name":                      {{Name: "agentproxy_\xff", Help: "A.", Read: read}},
		"no help":                           {{Name: "agentproxy_a", Read: read}},
		"no function":                       {{Name: "agentproxy_a", Help: "A."}},
		"the name twice":                    {good, good},
		"a metric that the service defines": {{Name: "agentproxy_scrape_errors_total", Help: "A.", Read: read}},
		"one that exists":                   {{Name: "agentproxy_taken", Help: "A.", Read: read}},
	} {
		s, r := create(t, admin.Config{}, discard)
		r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentproxy_taken", Help: "Taken."}))
		if s.Register(r, list) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	s, r := create(t, admin.Config{}, discard)
	if err := s.Register(r, []admin.Gauge{good}); err != nil {
		t.Error(err)
	}
}

func TestAGaugeOfEachPlace(t *testing.T) { synctest.Test(t, gaugeOfEachPlace) }

func gaugeOfEachPlace(t *testing.T) {
	values := map[admin.Place]float64{{Provider: "royal", Country: "DE"}: 2, {Provider: "royal"}: 1}
	s := watch(t, admin.Config{}, admin.Gauge{Name: "agentproxy_missing", Help: "Exits.",
		ByPlace: func(context.Context) (map[admin.Place]float64, error) { return values, nil }})
	for labels, want := range map[string]string{`country="DE",provider="royal"`: "2", `country="",provider="royal"`: "1", `country="US",provider="royal"`: ""} {
		if got := number(t, s, `missing{`+labels+`}`); got != want {
			t.Errorf("of %s it is %q, want %q", labels, got, want)
		}
	}
}

func TestAGaugeOfEachProvider(t *testing.T) { synctest.Test(t, gaugeOfEachProvider) }

func gaugeOfEachProvider(t *testing.T) {
	values := map[string]float64{"royal": 2, "brd": 0}
	s := watch(t, admin.Config{}, admin.Gauge{Name: "agentproxy_missing", Help: "Orders.",
		ByProvider: func(context.Context) (map[string]float64, error) { return values, nil }})
	for provider, want := range map[string]string{"royal": "2", "brd": "0", "other": ""} {
		if got := number(t, s, `missing{provider="`+provider+`"}`); got != want {
			t.Errorf("of %s it is %q, want %q", provider, got, want)
		}
	}
}
