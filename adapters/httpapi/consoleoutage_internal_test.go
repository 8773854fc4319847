package httpapi

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/storage/engine"
	"agentproxy/test/fake"
)

// A page for people that is answered 503 is logged and counted as a call is.
func TestAnOutageOfThePagesIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	failed := engine.UnavailableFor("pool", "connect", errors.New("no connection is free"))
	s := New(Config{}, Deps{Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: fake.NewClock(), IDs: &fake.IDs{},
		Console: func(w http.ResponseWriter, r *http.Request, _ netip.Addr) (string, error) {
			if r.URL.Path == "/console/" {
				return "", nil
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return "", failed
		}})
	for _, path := range []string{"/console/", "/console/money", "/console/money"} {
		s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	registry := prometheus.NewRegistry()
	if err := s.api.Register(registry); err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "agentproxy_unavailable_total" {
			counted = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	if err != nil || counted != 2 {
		t.Errorf("it is counted %v times, %v", counted, err)
	}
	if n := strings.Count(log.String(), "cause=pool"); n != 1 || !strings.Contains(log.String(), "no connection is free") {
		t.Errorf("it is logged %d times:\n%s", n, log.String())
	}
}
