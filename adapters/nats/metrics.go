package nats

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the series of the queue, which Collect gives to a registry.
type metrics struct {
	published       *prometheus.CounterVec
	folds           prometheus.Histogram
	late, again     prometheus.Counter
	missing, parked prometheus.Counter
	lag, waiting    *prometheus.Desc

	mu       sync.Mutex
	queues   [queues]backlog
	loggedAt time.Time
	unlogged int
}

// backlog is what waits in a queue that this replica folds.
type backlog struct {
	pending uint64
	oldest  time.Time // zero: nothing waits
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, nil, nil)
	}
	return &metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_telemetry_queue_calls_total",
			Help: "Calls of telemetry by what the queue did: stored, full, away, too large."}, []string{"result"}),
		folds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentproxy_telemetry_queue_fold_seconds",
			Help: "How long folds took.", Buckets: []float64{.002, .01, .05, .2, 1, 5}}),
		late: counter("agentproxy_telemetry_queue_late_total", "Answers that were given before their call was folded."),
		again: counter("agentproxy_telemetry_queue_redelivered_total",
			"Messages that were read again after they were folded."),
		missing: counter("agentproxy_telemetry_queue_missing_total",
			"Times that messages were gone before they were folded."),
		parked: counter("agentproxy_telemetry_queue_parked_total",
			"Messages that could not be folded and were set aside."),
		lag: desc("agentproxy_telemetry_queue_lag_seconds",
			"Age of the oldest message that waits in the queues of this replica."),
		waiting: desc("agentproxy_telemetry_queue_pending", "Messages that wait in the queues of this replica."),
	}
}

// oldest notes when the message was stored that is folded next.
func (m *metrics) oldest(i int, stored time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[i].oldest = stored
}

// pending notes how many messages of a queue wait.
func (m *metrics) pending(i int, n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[i].pending = n
	if n == 0 {
		m.queues[i].oldest = time.Time{}
	}
}

// forget removes the metrics of a queue that this replica does not fold any more.
func (m *metrics) forget(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[i] = backlog{}
}

// logEvery bounds how often a failure is logged.
const logEvery = 5 * time.Second

// why logs a failure, unless one was logged lately.
func (m *metrics) why(log *slog.Logger, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unlogged++; time.Since(m.loggedAt) < logEvery {
		return
	}
	log.Error("telemetry queue", "err", err, "times", m.unlogged)
	m.loggedAt, m.unlogged = time.Now(), 0
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.published, m.folds, m.late, m.again, m.missing, m.parked}
}

// Describe implements prometheus.Collector.
func (q *Queue) Describe(into chan<- *prometheus.Desc) {
	for _, c := range q.metrics.collectors() {
		c.Describe(into)
	}
	into <- q.metrics.lag
	into <- q.metrics.waiting
}

// Collect implements prometheus.Collector.
func (q *Queue) Collect(into chan<- prometheus.Metric) {
	for _, c := range q.metrics.collectors() {
		c.Collect(into)
	}
	pending, lag := q.metrics.backlog(time.Now())
	into <- prometheus.MustNewConstMetric(q.metrics.lag, prometheus.GaugeValue, lag.Seconds())
	into <- prometheus.MustNewConstMetric(q.metrics.waiting, prometheus.GaugeValue, float64(pending))
}

func (m *metrics) backlog(now time.Time) (pending uint64, lag time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.queues {
		pending += b.pending
		if !b.oldest.IsZero() {
			lag = max(lag, now.Sub(b.oldest))
		}
	}
	return pending, lag
}
