package endpoint

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by operation and status. Both come from what the
// program declares, never from a caller, so the number of series is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	outages  *prometheus.CounterVec
	all      []prometheus.Collector
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
	m.all = []prometheus.Collector{m.requests, m.seconds, m.outages}
	return m
}

// count notes a request that was answered.
func (m *metrics) count(c *Call, start time.Time) {
	operation := "none"
	if c.op != nil {
		operation = c.op.ID
	}
	m.requests.WithLabelValues(operation, strconv.Itoa(c.gin.Writer.Status())).Inc()
	m.seconds.WithLabelValues(operation).Observe(time.Since(start).Seconds())
}

// register shows the series while the server runs.
func (m *metrics) register(r *prometheus.Registry) error {
	if r == nil {
		return nil
	}
	for _, c := range m.all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) unregister(r *prometheus.Registry) {
	if r == nil {
		return
	}
	for _, c := range m.all {
		r.Unregister(c)
	}
}
