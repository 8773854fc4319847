package wire

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/tracing"
	"agentproxy/cmd/internal/version"
	"agentproxy/domain/ratelimit"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// secondsBuckets are those of jobs and deliveries: from a query to the longest that may be taken.
var secondsBuckets = []float64{.01, .05, .2, 1, 5, 20, 60}

// newJobObserver measures the jobs that this process runs, if there is a registry.
func newJobObserver(in counterIn) (queue.Observer, error) {
	if in.Registry == nil {
		return nil, nil
	}
	jobs := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "agentproxy_job_seconds",
		Help: "How long jobs took, by kind and result; the kind of a periodic one is its name.", Buckets: secondsBuckets},
		[]string{"kind", "result"})
	observe := func(kind, result string, took time.Duration) {
		jobs.WithLabelValues(kind, result).Observe(took.Seconds())
	}
	return observe, in.Registry.Register(jobs)
}

// registerLeader registers whether this process leads: of all replicas one does.
func registerLeader(q *queue.Queue, registry *prometheus.Registry) error {
	return registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "agentproxy_leader",
		Help: "1 while this process does the work that one replica is enough for, else 0."}, func() float64 {
		if q.Leads() {
			return 1
		}
		return 0
	}))
}

// timedSender measures deliveries of webhooks.
type timedSender struct {
	ports.Sender
	seconds *prometheus.HistogramVec
}

func newTimedSender(s ports.Sender, tracer *tracing.Tracer, registry *prometheus.Registry) (ports.Sender, error) {
	t := timedSender{tracer.Sender(s), prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "agentproxy_webhook_seconds",
		Help:    "How long attempts to deliver webhooks took, by result: the class of the receiver's answer, or none.",
		Buckets: secondsBuckets}, []string{"result"})}
	return t, registry.Register(t.seconds)
}

// Send sends a message.
func (t timedSender) Send(ctx context.Context, m ports.Message) (webhook.Outcome, error) {
	began := time.Now()
	outcome, err := t.Sender.Send(ctx, m)
	result := "none"
	if err == nil && outcome.StatusCode >= 100 {
		result = fmt.Sprintf("%dxx", outcome.StatusCode/100)
	}
	t.seconds.WithLabelValues(result).Observe(time.Since(began).Seconds())
	return outcome, err
}

// countedLimits counts the calls of the store of shared limits, while which fails each replica limits alone.
type countedLimits struct {
	ports.RateLimits
	ok, failed prometheus.Counter
}

// countLimits returns a store of limits whose calls are counted if there is a registry, or nil for none.
func countLimits(store ports.RateLimits, registry *prometheus.Registry) (ports.RateLimits, error) {
	if registry == nil {
		return store, nil
	}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_ratelimit_store_calls_total",
		Help: "Calls of the store of shared limits, Redis or PostgreSQL, by result; while it fails each replica limits " +
			"alone."}, []string{"result"})
	counted := countedLimits{store, calls.WithLabelValues("ok"), calls.WithLabelValues("failed")}
	if err := registry.Register(calls); err != nil || store == nil {
		return nil, err
	}
	return counted, nil
}

// Take takes tokens of a key.
func (l countedLimits) Take(ctx context.Context, key string, r ratelimit.Request) (ratelimit.Grant, error) {
	grant, err := l.RateLimits.Take(ctx, key, r)
	if err != nil {
		l.failed.Inc()
	} else {
		l.ok.Inc()
	}
	return grant, err
}

// registerBuild registers the version of the program.
func registerBuild(registry *prometheus.Registry) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentproxy_build_info", Help: "1, with the version.",
		ConstLabels: prometheus.Labels{"version": version.String(), "go": runtime.Version()}})
	build.Set(1)
	return registry.Register(build)
}
