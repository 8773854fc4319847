package gateway

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain/policy"
	"agentproxy/domain/traffic"
)

// Config holds the settings of a Gateway. The zero value works, except that every
// credential is wrong without a Key.
type Config struct {
	Addr string // listen address; default 127.0.0.1:8081
	Key  []byte // proxy passwords are derived from it
	// OlderKeys are keys that passwords were derived from before; these are right
	// too.
	OlderKeys [][]byte
	Replica   string // identifies this process in leases; default random
	// Forbidden are listeners of this service that must not be reached through the
	// gateway; its own is always forbidden.
	Forbidden []netip.AddrPort
	// Public is where clients reach this service, by name or address and port. It must not be
	// reached through the gateway either.
	Public []hostport.Target
	// SingleLabels lets names without a dot be targets, which are the operator's own.
	SingleLabels bool
	// Resolve is what upstream proxies are asked for, by the name of their provider; default
	// dial.Automatic.
	Resolve map[string]dial.Resolution
	// ProxyRoots are those of the certificates of upstream proxies; default the system's.
	ProxyRoots *x509.CertPool
	// EchoTLS is the TLS by which Probe requests EchoURL, if that is an https URL.
	EchoTLS *tls.Config
	// AuthFailureLimit is how many wrong credentials an address may try in a minute
	// before they get 429; 0 is unlimited.
	AuthFailureLimit int
	// EchoURL is where Probe requests the caller's address: the API's own /v1/ip, by
	// address and port.
	EchoURL string
	// PublicEchoURL is the same echo as the internet reaches it, for exits behind an
	// upstream proxy; default EchoURL.
	PublicEchoURL string
	// Tunnels is how many connections one session may have open here; default 256.
	Tunnels int
	// SessionTunnels is how many a session may have open here whatever its workers do; default
	// 4,096. Less than Tunnels bounds that too.
	SessionTunnels int
	// Connections is how many clients may be connected; 0 is unlimited. A client may take
	// two descriptors, the second for its target.
	Connections int
	// PerAddress is how many of them one client address may have without a credential; 0
	// is unlimited.
	PerAddress int
	// Balancers are networks whose connections begin with a header of the PROXY protocol, which names the client; none
	// is the default.
	Balancers []netip.Prefix
	// TLS has the certificate that clients are shown: GetCertificate is called for each handshake. Versions and protocols
	// are set here. Nil: there is none, and a client that begins TLS gets an alert.
	TLS *tls.Config
	// TicketSecret is what the keys of session tickets are derived from, the same on all replicas. Without one each
	// process resumes its own sessions alone.
	TicketSecret []byte
	// RefusePlaintext refuses clients without TLS before their credential is read.
	RefusePlaintext bool
	// Agent and TrialAgent bound the connections of one agent, and of one whose account is
	// a trial; 0 is unlimited.
	Agent, TrialAgent int
	// TrialPlaces is how many of Connections trial accounts together have; beyond it each may
	// have quota.MinShare while a quarter of Connections is free. 0 is unlimited.
	TrialPlaces int
	// ConnectionRate and TrialConnectionRate bound the new connections a second of one agent;
	// 0 is unlimited.
	ConnectionRate, TrialConnectionRate int
	// Targets and TrialTargets bound to how many registrable domains or addresses one agent
	// connects in a minute; 0 is unlimited.
	Targets, TrialTargets int
	// TargetRate and TrialTargetRate bound the new connections a minute of one agent to one
	// registrable domain or address; 0 is unlimited. Names of one address share a part of them.
	TargetRate, TrialTargetRate int
	// WatchScans reports agents whose connections look like a scan to Deps.Scanned.
	WatchScans bool
	// Own are the exits of this host, for the metrics.
	Own []netip.Addr
	// Sessions is how many routes are kept in memory; default 100,000.
	Sessions int
	// Pipes is how many pipes the relay may hold at once; default 256, none if
	// negative. Without a pipe a direction is copied in user space.
	Pipes  int
	Timing Timing
}

// Deps are the dependencies of a Gateway. Routes, Leases and Observer are required.
type Deps struct {
	Routes        route.Source
	Workers       route.Workers // default refuses every worker
	Leases        lease.Core
	Observer      Observer
	AddressPolicy dial.AddressPolicy // nil forbids every target
	Exits         ExitLog            // who used which exit; default records nothing
	// Scanned is called about an agent whose connections look like a scan, once in quota.ScanWindow.
	// It does not block. Default none.
	Scanned func(Scan)
	// StoredAll reports whether the service stores no more for an agent on trial: its connections would be
	// records. It waits for nothing; default false.
	StoredAll func(agentID string) bool
	// Policy returns the rules of the operator and of products that hold now; default none.
	// It is called for every connection.
	Policy   func() *policy.Shared
	Resolver dial.Resolver         // default net.DefaultResolver
	Metrics  prometheus.Registerer // series are registered while the gateway runs; nil for none
	Now      func() time.Time      // wall clock of rotation and expiry; default time.Now
	Log      *slog.Logger          // default discards
}

// Observer receives the events of sessions; *app.Observer is the implementation.
type Observer interface {
	// Observe records an observation. It never blocks.
	Observe(traffic.Observation)
}

// Timing holds every duration of the gateway; zero means the default.
type Timing struct {
	Header     time.Duration // a whole request head or SOCKS5 handshake: 10 s
	Resolve    time.Duration // 5 s
	Connect    time.Duration // 15 s
	Idle       time.Duration // both directions quiet: 300 s
	HalfClosed time.Duration // one direction ended, the other quiet: 60 s
	Keep       time.Duration // a kept client connection between requests: 60 s
	Upstream   time.Duration // a kept target connection between requests: 30 s
	Answer     time.Duration // a plain HTTP target to begin its response: 120 s
	Linger     time.Duration // reading on after the last byte sent, so that no reset destroys it: 2 s
	Drain      time.Duration // open tunnels after Stop: 30 s
	Spare      time.Duration // a tunnel that is quiet for so long is closed if new connections need its place: 5 s
	Admit      time.Duration // a new connection waits for a lease: 2 s
	Call       time.Duration // one call of Routes or Leases: 3 s

	Report    time.Duration // changed counters are reported: 1 s
	Heartbeat time.Duration // an open lease is renewed: 4 s
	IdleGive  time.Duration // an unused lease is returned: traffic.IdleGive
	StopAfter time.Duration // relaying stops so long after a renewal was due: traffic.UsualLasts
	Fold      time.Duration // a calm lease is renewed, and reported in between: 0, as often as others
}

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:8081"
	}
	if c.Replica == "" {
		c.Replica = strings.ToLower(rand.Text())
	}
	if c.PublicEchoURL == "" {
		c.PublicEchoURL = c.EchoURL
	}
	orDefault(&c.Tunnels, 256)
	orDefault(&c.SessionTunnels, 4096)
	c.Tunnels = min(c.Tunnels, c.SessionTunnels)
	orDefault(&c.Sessions, 100_000)
	orDefault(&c.Pipes, 256)
	t := &c.Timing
	orDefault(&t.Header, 10*time.Second)
	orDefault(&t.Resolve, 5*time.Second)
	orDefault(&t.Connect, 15*time.Second)
	orDefault(&t.Idle, 300*time.Second)
	orDefault(&t.HalfClosed, 60*time.Second)
	orDefault(&t.Keep, 60*time.Second)
	orDefault(&t.Upstream, 30*time.Second)
	orDefault(&t.Answer, 120*time.Second)
	orDefault(&t.Linger, 2*time.Second)
	orDefault(&t.Drain, 30*time.Second)
	orDefault(&t.Spare, 5*time.Second)
	orDefault(&t.Admit, 2*time.Second)
	orDefault(&t.Call, 3*time.Second)
	orDefault(&t.Report, time.Second)
	orDefault(&t.Heartbeat, 4*time.Second)
	orDefault(&t.IdleGive, traffic.ReturnIdleAfter)
	orDefault(&t.StopAfter, traffic.UsualLasts)
	return c
}

func orDefault[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

func (d Deps) withDefaults() Deps {
	if d.Policy == nil {
		d.Policy = func() *policy.Shared { return nil }
	}
	if d.Scanned == nil {
		d.Scanned = func(Scan) {}
	}
	if d.Workers == nil {
		d.Workers = noWorkers{}
	}
	if d.StoredAll == nil {
		d.StoredAll = func(string) bool { return false }
	}
	if d.Exits == nil {
		d.Exits = noExits{}
	}
	if d.Resolver == nil {
		d.Resolver = net.DefaultResolver
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}
