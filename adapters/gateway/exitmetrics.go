package gateway

import (
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxExitSeries is the most exits of this host that are counted apart; more are counted together.
const maxExitSeries = 64

// The value of the label exit for exits of this host that are counted together, and for those of a
// provider that is configured no more.
const (
	ownExits   = "embedded"
	otherExits = "other"
)

// reached counts the attempts to reach a target from one exit.
type reached struct{ ok, failed prometheus.Counter }

// exitMetrics counts attempts by exit: by address for the exits of this host, by provider for the others. Its
// maps are not changed, so the number of series is fixed from the start.
type exitMetrics struct {
	dials     *prometheus.CounterVec
	own       map[netip.Addr]*reached
	providers map[string]*reached
	together  *reached // exits of this host that have no series of their own
	other     *reached
	seconds   prometheus.Histogram
}

func newExitMetrics(own []netip.Addr, providers []string) *exitMetrics {
	m := &exitMetrics{own: map[netip.Addr]*reached{}, providers: map[string]*reached{},
		dials: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_exit_dials_total",
			Help: "Attempts to reach targets by exit, an address of this host or a provider, and outcome."},
			[]string{"exit", "outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentproxy_gateway_dial_seconds",
			Help:    "Time until a target accepted the connection, without the lookup of its name; failures are outcomes.",
			Buckets: []float64{.005, .02, .1, .5, 2, 10}})}
	of := func(exit string) *reached {
		return &reached{m.dials.WithLabelValues(exit, "ok"), m.dials.WithLabelValues(exit, "failed")}
	}
	m.together, m.other = of(ownExits), of(otherExits)
	if len(own) <= maxExitSeries {
		for _, exit := range own {
			m.own[exit] = of(exit.String())
		}
	}
	for _, name := range providers {
		m.providers[name] = of(name)
	}
	return m
}

// from returns the counters of an exit of this host.
func (m *exitMetrics) from(exit netip.Addr) *reached {
	if r := m.own[exit]; r != nil {
		return r
	}
	return m.together
}

// through returns the counters of a provider.
func (m *exitMetrics) through(provider string) *reached {
	if r := m.providers[provider]; r != nil {
		return r
	}
	return m.other
}

// dialled records the time until a target accepted a connection.
func (m *exitMetrics) dialled(r *reached, took time.Duration) {
	r.ok.Inc()
	m.seconds.Observe(took.Seconds())
}
