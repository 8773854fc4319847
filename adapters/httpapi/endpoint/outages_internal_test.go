package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	a := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: clock})
	Declare(a, Operation{ID: "list-sessions", Method: http.MethodGet, Path: "/sessions"},
		func(context.Context, *struct{}) (int, struct{}, error) { return http.StatusOK, struct{}{}, nil })
	answer := func(err error) {
		t.Helper()
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest("GET", "/v1/sessions", nil)
		if e := a.RefusalOf(&Call{Context: t.Context(), gin: c, op: a.ops["list-sessions"]}, err); e.Kind != domain.Unavailable {
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
	clock.Advance(time.Second - time.Millisecond)
	answer(deadlock)
	lines()
	clock.Advance(time.Millisecond)
	answer(deadlock)
	answer(context.Canceled)
	answer(domain.ErrUnavailable)
	lines("more_since_last=3", "cause=cancelled", "cause=service_unavailable")
	for cause, want := range map[string]float64{"deadlock": 5, "begin_snapshot": 1, "cancelled": 1, "service_unavailable": 1} {
		var m dto.Metric
		if err := a.metrics.outages.WithLabelValues(cause).Write(&m); err != nil || m.Counter.GetValue() != want {
			t.Errorf("%s is counted %v times, want %v; %v", cause, m.Counter.GetValue(), want, err)
		}
	}
}
