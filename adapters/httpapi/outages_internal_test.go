package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	dto "github.com/prometheus/client_model/go"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/test/fake"
)

// A storm of 503s is counted in full, and logged once a second a cause with the error behind it.
func TestTheCauseOfA503IsLoggedOnceASecondAndCounted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	clock := fake.NewClock()
	s := New(Config{}, Deps{Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: clock})
	answer := func(err error) {
		t.Helper()
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest("GET", "/v1/sessions", nil)
		if e := s.refusalOf(&call{Context: t.Context(), gin: c, op: s.ops["list-sessions"]}, err); e.Kind != domain.Unavailable {
			t.Errorf("%v is %v", err, e)
		}
	}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		log.Reset()
		if len(want) == 0 && got[0] == "" {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("logged %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) || !strings.Contains(got[i], "level=WARN") {
				t.Errorf("line %d is %s, want %s", i, got[i], want[i])
			}
		}
	}
	deadlock := fmt.Errorf("buy: %w", engine.UnavailableFor("deadlock", "database", errors.New("deadlock detected")))
	answer(deadlock)
	answer(deadlock)
	answer(deadlock)
	answer(engine.Unavailable("begin snapshot", errors.New("disk")))
	lines("cause=deadlock", "cause=begin_snapshot")
	clock.Advance(logOutagesEvery - time.Millisecond)
	answer(deadlock)
	lines()
	clock.Advance(time.Millisecond)
	answer(deadlock)
	answer(context.Canceled)
	answer(domain.ErrUnavailable)
	lines("more_since_last=3", "cause=cancelled", "cause=service_unavailable")
	for cause, want := range map[string]float64{"deadlock": 5, "begin_snapshot": 1, "cancelled": 1, "service_unavailable": 1} {
		var m dto.Metric
		if err := s.metrics.outages.WithLabelValues(cause).Write(&m); err != nil || m.Counter.GetValue() != want {
			t.Errorf("%s is counted %v times, want %v; %v", cause, m.Counter.GetValue(), want, err)
		}
	}
}

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
	var m dto.Metric
	if err := s.metrics.outages.WithLabelValues("pool").Write(&m); err != nil || m.Counter.GetValue() != 2 {
		t.Errorf("it is counted %v times, %v", m.Counter.GetValue(), err)
	}
	if n := strings.Count(log.String(), "cause=pool"); n != 1 || !strings.Contains(log.String(), "no connection is free") {
		t.Errorf("it is logged %d times:\n%s", n, log.String())
	}
}
