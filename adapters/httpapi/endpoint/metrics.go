package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/lograte"
	"agentproxy/domain"
	"agentproxy/ports"
)

// metrics counts requests by operation and status. Both come from what the
// program declares, never from a caller, so the number of series is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	outages  *prometheus.CounterVec
	conns.Collectors
}

func newMetrics() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_http_requests_total",
			Help: "Requests to the API by operation and status; none is an unknown route."}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "agentproxy_http_request_seconds",
			Help: "Time to answer.", Buckets: []float64{.001, .005, .02, .1, .5, 2, 10}}, []string{"operation"}),
	}
	m.outages = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_unavailable_total",
		Help: "Calls that were answered 503, by cause."}, []string{"cause"})
	m.Collectors = conns.Collectors{m.requests, m.seconds, m.outages}
	return m
}

// count notes a request that was answered.
func (m *metrics) count(operation string, status int, start time.Time) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(operation).Observe(time.Since(start).Seconds())
}

// outages counts the calls that are answered 503, and logs why: once a second a cause, because there
// may be thousands of one.
type outages struct {
	log     *slog.Logger
	clock   ports.Clock
	metrics *metrics
	logged  *lograte.Limiter
}

func newOutages(log *slog.Logger, clock ports.Clock, m *metrics) *outages {
	return &outages{log: log, clock: clock, metrics: m, logged: lograte.New(1, time.Second)}
}

// note takes the refusal of a call to a route and the error behind it.
func (o *outages) note(ctx context.Context, id, route string, e *domain.Error, err error) {
	cause := causeOf(e, err)
	o.metrics.outages.WithLabelValues(cause).Inc()
	now := o.clock.Now()
	if !o.logged.Allow(cause, now) {
		return
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "the service is unavailable", slog.String("cause", cause),
		slog.String("request_id", id), slog.String("route", route), slog.Int("more_since_last", o.logged.LeftOut(cause, now)),
		slog.Any("err", err))
}

// causeOf names why a call is answered 503: by the error that has a cause, or by the code of the
// refusal. Both are words of the program, so they are few.
func causeOf(e *domain.Error, err error) string {
	var known interface {
		error
		Cause() string
	}
	switch {
	case errors.As(err, &known):
		return strings.ReplaceAll(known.Cause(), " ", "_")
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	}
	return strings.ToLower(e.Code)
}
