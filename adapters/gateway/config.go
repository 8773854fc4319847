package gateway

import (
	"crypto/rand"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/domain/traffic"
)

// Config is what a Gateway needs to know. The zero value works, except that
// without a Judge every target is refused and without a Key every credential.
type Config struct {
	Addr    string // to listen on; default 127.0.0.1:8081
	Key     []byte // proxy passwords derive from it
	Replica string // names this process in leases; default: random
	Judge   Judge
	// Resolver looks target names up; default: the system's.
	Resolver Resolver
	// Forbidden are listeners of ours that must not be reached through the
	// gateway; its own is always among them.
	Forbidden []netip.AddrPort
	// GuessLimit is how many wrong credentials an address may try in a minute
	// before they get 429; 0 is unlimited.
	GuessLimit int
	// EchoURL is where Probe asks for the address it is seen from: the API's
	// own /v1/ip, by address and port.
	EchoURL string
	// PublicEchoURL is the same echo as the internet reaches it, for exits behind
	// an upstream proxy; default EchoURL.
	PublicEchoURL string
	// Tunnels is how many one session may have open here; default 256.
	Tunnels int
	// Sessions is how many routes are kept in memory; default 100,000.
	Sessions int
	// Pipes is how many pipes the relay may hold at once; default 256, none if
	// negative. Without one a direction is copied in user space.
	Pipes  int
	Timing Timing
	// Metrics is where the gateway registers its series while it runs; nil: nowhere.
	Metrics prometheus.Registerer
	// Now is the wall clock that timed rotation and expiry are judged by.
	Now func() time.Time
}

// Timing holds every duration of the gateway; a zero stands for the default.
type Timing struct {
	Header     time.Duration // a whole request head or SOCKS5 handshake: 10 s
	Resolve    time.Duration // 5 s
	Connect    time.Duration // 15 s
	Idle       time.Duration // both directions quiet: 300 s
	HalfClosed time.Duration // one direction ended, the other quiet: 60 s
	Keep       time.Duration // a kept client connection between requests: 60 s
	Upstream   time.Duration // a kept target connection between requests: 30 s
	Answer     time.Duration // a plain HTTP target to begin its answer: 120 s
	Linger     time.Duration // reading on after our last byte, so that no reset destroys it: 2 s
	Drain      time.Duration // open tunnels after Stop: 30 s
	Admit      time.Duration // a new connection waits for a lease: 2 s
	Call       time.Duration // one call of the Backend: 3 s

	Report    time.Duration // moved counters are reported: 1 s
	Heartbeat time.Duration // an open lease is renewed: 4 s
	IdleGive  time.Duration // an unused lease is given back: traffic.IdleGive
	StopAfter time.Duration // relaying stops so long after the last renewal: traffic.StopAfter
}

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:8081"
	}
	if c.Replica == "" {
		c.Replica = strings.ToLower(rand.Text())
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.PublicEchoURL == "" {
		c.PublicEchoURL = c.EchoURL
	}
	orDefault(&c.Tunnels, 256)
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
	orDefault(&t.Admit, 2*time.Second)
	orDefault(&t.Call, 3*time.Second)
	orDefault(&t.Report, time.Second)
	orDefault(&t.Heartbeat, 4*time.Second)
	orDefault(&t.IdleGive, traffic.ReturnIdleAfter)
	orDefault(&t.StopAfter, traffic.StopAfter)
	return c
}

func orDefault[T int | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// start is what monotonic times are counted from.
var start = time.Now()

// mono is the monotonic clock. Every limit of ours is measured by it, so that a
// step of the wall clock neither cuts a tunnel nor keeps a dead lease alive.
func mono() time.Duration { return time.Since(start) }
