package admin_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/admin"
)

// gone is the answer of a scraper that went away.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

func TestAScraperThatLeavesFillsNoLog(t *testing.T) {
	var out bytes.Buffer
	registry := prometheus.NewRegistry()
	for _, name := range []string{"a_total", "b_total", "c_total"} {
		registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: name}))
	}
	broken := prometheus.NewDesc("broken", "has no value", nil, nil)
	fails := false
	registry.MustRegister(collector(func(ch chan<- prometheus.Metric) {
		if fails {
			ch <- prometheus.NewInvalidMetric(broken, errors.New("no value"))
		}
	}))
	s, err := admin.New(admin.Config{Gate: gate()}, nil, registry, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	scrape := httptest.NewRequest("GET", "/metrics", nil)
	scrape.Header.Set("Authorization", "Bearer "+token)
	s.Handler().ServeHTTP(gone{httptest.NewRecorder()}, scrape)
	if out.Len() > 0 {
		t.Errorf("logged %q", out.String())
	}
	fails = true
	s.Handler().ServeHTTP(httptest.NewRecorder(), scrape)
	if got := out.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "no value") {
		t.Errorf("a metric that fails is logged as %q", got)
	}
}

// collector is a function that collects; what it describes is not checked.
type collector func(chan<- prometheus.Metric)

func (collector) Describe(chan<- *prometheus.Desc)      {}
func (f collector) Collect(ch chan<- prometheus.Metric) { f(ch) }
