package gateway

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// protocol is how a request came.
type protocol uint8

const (
	viaConnect protocol = iota
	viaHTTP
	viaSOCKS
)

var protocols = [...]string{viaConnect: "connect", viaHTTP: "http", viaSOCKS: "socks5"}

// The outcomes of requests that have no code of their own.
const (
	wentWell = iota // a tunnel was opened, or an answer passed on
	wasCut          // an answer began and did not end
	hasOther        // a code that is not in the list
)

// outcomes are all that a request can come to: those above, and the codes of
// refusals. Nothing that a client or a target says becomes a label, so the
// number of series is fixed from the start.
var outcomes = [...]string{wentWell: "OK", wasCut: "CUT", hasOther: "OTHER",
	"PROXY_AUTH_REQUIRED", "TOO_MANY_GUESSES", "TRAFFIC_EXHAUSTED", "TARGET_REFUSED", "SESSION_EXPIRED",
	"TOO_MANY_TUNNELS", "SESSION_NOT_READY", "NO_CAPACITY", "TARGET_UNREACHABLE", "TARGET_TIMEOUT",
	"BAD_REQUEST", "HEAD_TOO_LARGE", "UPSTREAM_AUTH", "UPSTREAM_PAYMENT", "UPSTREAM_REFUSED", "UPSTREAM_BUSY",
	"UPSTREAM_FAILED", "UPSTREAM_TIMEOUT", "UPSTREAM_UNREACHABLE"}

// outcomeOf finds the outcome of a code; only refusals pay for the search.
func outcomeOf(code string) int {
	for i := hasOther + 1; i < len(outcomes); i++ {
		if outcomes[i] == code {
			return i
		}
	}
	return hasOther
}

// metrics counts what happens here. Its counters are found before the first
// request, so that an event costs an atomic addition and no memory; what can be
// read off the gateway itself is read when somebody asks.
type metrics struct {
	requests [len(protocols)][len(outcomes)]prometheus.Counter
	up, down prometheus.Counter
	dials    prometheus.Histogram
	all      []prometheus.Collector
}

func newMetrics(g *Gateway) *metrics {
	m := &metrics{}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_requests_total",
		Help: "Requests by protocol and outcome; a refusal's outcome is its code."}, []string{"protocol", "outcome"})
	for p, name := range protocols {
		for o, outcome := range outcomes {
			m.requests[p][o] = requests.WithLabelValues(name, strings.ToLower(outcome))
		}
	}
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_bytes_total",
		Help: "Metered bytes that were relayed, up from clients and down to them."}, []string{"direction"})
	m.up, m.down = bytes.WithLabelValues("up"), bytes.WithLabelValues("down")
	m.dials = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentproxy_gateway_dial_seconds",
		Help:    "Time until a target accepted the connection, without the lookup of its name; failures are outcomes.",
		Buckets: []float64{.005, .02, .1, .5, 2, 10}})
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	m.all = []prometheus.Collector{requests, bytes, m.dials,
		gauge("agentproxy_gateway_tunnels", "Open tunnels.", func() float64 { return float64(g.tunnels.Load()) }),
		gauge("agentproxy_gateway_leases_open", "Sessions that hold a lease of traffic here.",
			func() float64 { return float64(g.renewer.open()) }),
		gauge("agentproxy_gateway_sessions_cached", "Sessions whose routes are kept in memory.",
			func() float64 { return float64(g.routes.count()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "agentproxy_gateway_lease_waits_total",
			Help: "Times that somebody waited for a lease of traffic."},
			func() float64 { return float64(g.renewer.starved.Load()) }),
	}
	return m
}

func (m *metrics) done(p protocol, outcome int) { m.requests[p][outcome].Inc() }

func (m *metrics) refused(p protocol, ref *refusal) { m.done(p, outcomeOf(ref.code)) }

// moved counts bytes that left one side, whatever became of their lease.
func (m *metrics) moved(up, down int64) {
	if up > 0 {
		m.up.Add(float64(up))
	}
	if down > 0 {
		m.down.Add(float64(down))
	}
}

func (m *metrics) dialled(took time.Duration) { m.dials.Observe(took.Seconds()) }

var _ prometheus.Collector = (*metrics)(nil)

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(ch)
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(ch)
	}
}
