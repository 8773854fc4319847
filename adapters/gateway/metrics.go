package gateway

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/refusal"
)

// protocol is how a request arrived.
type protocol uint8

const (
	viaConnect protocol = iota
	viaHTTP
	viaSOCKS
)

var protocols = [...]string{viaConnect: "connect", viaHTTP: "http", viaSOCKS: "socks5"}

// outcome is what a request came to: one of the constants, or a refusal's code
// after them. Nothing that a client or a target sends becomes a label, so the
// number of series is fixed from the start.
type outcome uint8

const (
	completed outcome = iota // a tunnel was opened, or a response passed on in full
	truncated                // a response began and did not end
	other                    // a refusal without a code
	outcomes  = int(other) + refusal.Codes
)

// refused returns the outcome of a refusal's code.
func refused(code refusal.Code) outcome { return other + outcome(code) }

// label returns the value of the label outcome. CUT is older than the name of the
// constant and stays what dashboards query.
func (o outcome) label() string {
	switch o {
	case completed:
		return "ok"
	case truncated:
		return "cut"
	case other:
		return "other"
	}
	return strings.ToLower(refusal.Code(o - other).String())
}

// metrics holds the gateway's series. The counters are looked up before the first
// request, so that an event costs an atomic addition and no allocation; gauges read
// the gateway's own state when they are collected.
type metrics struct {
	requests   [len(protocols)][outcomes]prometheus.Counter
	bytes      lease.Counters
	exits      *exitMetrics
	panics     prometheus.Counter
	scans      map[bool]prometheus.Counter // by whether the account is on trial
	handshakes tlsHandshakes
	conns.Collectors
}

func newMetrics(g *Gateway) *metrics {
	m := &metrics{}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_requests_total",
		Help: "Requests by protocol and outcome; a refusal's outcome is its code."}, []string{"protocol", "outcome"})
	for p, name := range protocols {
		for o := range outcomes {
			m.requests[p][o] = requests.WithLabelValues(name, outcome(o).label())
		}
	}
	relayed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_bytes_total",
		Help: "Metered bytes that were relayed, up from clients and down to them."}, []string{"direction"})
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "agentproxy_gateway_leases_lost_total",
		Help: "Leases that were reclaimed before they were renewed; what they relayed since is not charged."})
	m.bytes = lease.Counters{Up: relayed.WithLabelValues("up"), Down: relayed.WithLabelValues("down"), Lost: lost}
	m.exits = newExitMetrics(g.cfg.Own, slices.Sorted(maps.Keys(g.cfg.Resolve)))
	m.handshakes = newTLSHandshakes()
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{Name: "agentproxy_gateway_panics_total",
		Help: "Panics while serving a connection; each ended that connection alone."})
	scans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_gateway_scans_total",
		Help: "Times that connections of an agent looked like a scan. Accounts on trial are disabled for it."},
		[]string{"account"})
	m.scans = map[bool]prometheus.Counter{true: scans.WithLabelValues("trial"), false: scans.WithLabelValues("funded")}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	count := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read)
	}
	m.Collectors = conns.Collectors{requests, relayed, lost, m.exits.dials, m.exits.seconds, m.panics, scans, g.table,
		m.handshakes.vec,
		gauge("agentproxy_gateway_tunnels", "Open tunnels.", func() float64 { return float64(g.relay.Open()) }),
		gauge("agentproxy_gateway_leases_open", "Sessions that hold a lease of traffic here.",
			func() float64 { return float64(g.leases.Open()) }),
		gauge("agentproxy_gateway_sessions_cached", "Sessions whose routes are kept in memory.",
			func() float64 { return float64(g.routes.Len()) }),
		gauge("agentproxy_gateway_agents", "Agents with connections.",
			func() float64 { return float64(g.agents.Usage(0).Agents) }),
		gauge("agentproxy_gateway_largest_agent_connections", "Connections of the agent that has most.",
			func() float64 { return float64(g.agents.Largest()) }),
		gauge("agentproxy_gateway_trial_connections", "Connections of trial accounts together.",
			func() float64 { return float64(g.agents.Usage(0).Trial) }),
		count("agentproxy_gateway_share_closed_total",
			"Connections of the largest agents that were closed for agents below their share of a full gateway.",
			func() float64 { return float64(g.agents.Usage(0).Closed) }),
		count("agentproxy_gateway_share_refused_total",
			"Connections that a full gateway refused to agents that had their share of it.",
			func() float64 { return float64(g.agents.Usage(0).Refused) }),
		count("agentproxy_gateway_lease_waits_total", "Times that a connection waited for a lease of traffic.",
			func() float64 { return float64(g.leases.Waits()) }),
	}
	return m
}

// done counts a request.
func (m *metrics) done(p protocol, o outcome) { m.requests[p][o].Inc() }

// refused counts a request that got a refusal.
func (m *metrics) refused(p protocol, ref *refusal.Refusal) { m.done(p, refused(ref.Code)) }

var _ prometheus.Collector = (*metrics)(nil)
