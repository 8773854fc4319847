package certificate

import (
	"crypto/x509"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the series of the certificates.
type metrics struct {
	expires, renewal *prometheus.GaugeVec
	attempts         *prometheus.CounterVec
	fault            prometheus.Gauge
}

func newMetrics() *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"name"})
	}
	return &metrics{
		expires: gauge("agentproxy_certificate_expires_timestamp_seconds",
			"When the certificate that is presented expires, by host, or files; 0 if there is none yet."),
		renewal: gauge("agentproxy_certificate_renewal_timestamp_seconds",
			"When a third of the lifetime of that certificate is left and it is due to be renewed."),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_certificate_attempts_total",
			Help: "Attempts of this replica to have a certificate of the authority, by outcome: obtained or failed."},
			[]string{"outcome"}),
		fault: prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentproxy_certificate_files_fault",
			Help: "1 while the files of the certificate have a fault, so that the one before is presented; else 0."})}
}

// due returns when a certificate is due to be renewed: a third of its lifetime is left.
func due(c *x509.Certificate) time.Time { return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3) }

func (m *metrics) shown(name string, c *x509.Certificate) {
	m.expires.WithLabelValues(name).Set(float64(c.NotAfter.Unix()))
	m.renewal.WithLabelValues(name).Set(float64(due(c).Unix()))
}

// missing counts a host that has no certificate yet.
func (m *metrics) missing(name string) {
	m.expires.WithLabelValues(name).Set(0)
	m.renewal.WithLabelValues(name).Set(0)
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	m.expires.Describe(to)
	m.renewal.Describe(to)
	m.attempts.Describe(to)
	m.fault.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.expires.Collect(to)
	m.renewal.Collect(to)
	m.attempts.Collect(to)
	m.fault.Collect(to)
}
