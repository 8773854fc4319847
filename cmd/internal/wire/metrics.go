package wire

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
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

// timedSender measures deliveries of webhooks.
type timedSender struct {
	ports.Sender
	seconds *prometheus.HistogramVec
}

func newTimedSender(s ports.Sender, registry *prometheus.Registry) (ports.Sender, error) {
	t := timedSender{s, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "agentproxy_webhook_seconds",
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

// poolMetrics shows the connections to PostgreSQL.
type poolMetrics struct {
	pool                         *pgxpool.Pool
	used, idle, limit            *prometheus.Desc
	waits, waited, gone, created *prometheus.Desc
}

// registerMetrics registers what is measured of the process and of the database.
func registerMetrics(st *storage.Store, registry *prometheus.Registry) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentproxy_build_info", Help: "1, with the version.",
		ConstLabels: prometheus.Labels{"version": Version, "go": runtime.Version()}})
	build.Set(1)
	err := registry.Register(build)
	if pool := st.Pool(); pool != nil {
		err = errors.Join(err, registry.Register(newPoolMetrics(pool)))
	}
	return err
}

func newPoolMetrics(pool *pgxpool.Pool) *poolMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("agentproxy_database_pool_"+name, help, nil, nil)
	}
	return &poolMetrics{pool: pool,
		used:    desc("in_use", "Connections to PostgreSQL that are in use."),
		idle:    desc("idle", "Connections to PostgreSQL that are idle."),
		limit:   desc("limit", "The most connections to PostgreSQL."),
		waits:   desc("waits_total", "How often a connection was waited for."),
		waited:  desc("wait_seconds_total", "How long connections were waited for."),
		gone:    desc("canceled_total", "How often the wait for a connection was given up; the call is answered 503."),
		created: desc("created_total", "Connections to PostgreSQL that were made."),
	}
}

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.used, m.idle, m.limit, m.waits, m.waited, m.gone, m.created} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.pool.Stat()
	for _, v := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{m.used, prometheus.GaugeValue, float64(s.AcquiredConns())},
		{m.idle, prometheus.GaugeValue, float64(s.IdleConns())},
		{m.limit, prometheus.GaugeValue, float64(s.MaxConns())},
		{m.waits, prometheus.CounterValue, float64(s.EmptyAcquireCount())},
		{m.waited, prometheus.CounterValue, s.EmptyAcquireWaitTime().Seconds()},
		{m.gone, prometheus.CounterValue, float64(s.CanceledAcquireCount())},
		{m.created, prometheus.CounterValue, float64(s.NewConnsCount())},
	} {
		ch <- prometheus.MustNewConstMetric(v.desc, v.kind, v.value)
	}
}
