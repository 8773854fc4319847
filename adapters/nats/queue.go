// Package nats keeps reported telemetry in NATS JetStream until it is folded into the database.
//
// Agents are divided among queues, each a stream of its own, so the numbers of its messages have no
// gap. A replica reads the queues that fall to it from the cursor in the database on, and hands their
// messages to a fold, which moves the cursor with what it stores. Nothing is acknowledged to the
// server: what is folded is purged. So it does not matter how often a message is read, or by whom.
package nats

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"agentproxy/ports"
)

// queues is the number of queues. It cannot be changed while messages wait: an agent's would be
// folded out of order.
const queues = 16

// maxBytes bounds a queue; a full one refuses messages. An operator may change it on the server.
const maxBytes = 64 << 20

// The names of streams and subjects; those of a queue end in its number.
const (
	streamName     = "AGENTPROXY_TELEMETRY_"
	subjectName    = "agentproxy.telemetry."
	foldedSubject  = "agentproxy.telemetry-folded." // progress of folds
	workersSubject = "agentproxy.telemetry-workers" // heartbeats of replicas that fold
	parkedStream   = "AGENTPROXY_TELEMETRY_PARKED"  // messages that could not be folded
	parkedSubject  = "agentproxy.telemetry-parked"
	parkedBytes    = 64 << 20 // of which the oldest give way
	parkedAge      = 30 * 24 * time.Hour
	heartbeat      = 2 * time.Second // how often a replica sends one
	deadAfter      = 4               // heartbeats that a dead replica missed
	manyServers    = 3               // from three servers on a stream has three copies
	headroom       = 4 << 10         // of a message for its headers
)

// Config is how a queue is reached.
type Config struct {
	// URL is that of a server, or of several with commas between them.
	URL string
	// Heartbeat replaces the two seconds between the heartbeats of a replica. Pauses after failures are
	// fractions of it. Tests set it.
	Heartbeat time.Duration
	// Attempt replaces the 800 ms that the server has to store a call; tests set it.
	Attempt time.Duration
	// MaxBytes replaces the 64 MiB of a queue that is made; tests set it.
	MaxBytes int64
	// Log gets warnings for the operator; nil discards them.
	Log *slog.Logger
}

// Queue is the client of the servers. It may be used by many goroutines.
type Queue struct {
	config  Config
	conn    *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	name    string // of this replica
	folded  [queues]progress
	members members
	metrics *metrics
}

var _ ports.TelemetryQueue = (*Queue)(nil)

// ErrURL is returned for a text that names no server. It does not repeat the text, in which there may
// be a password.
var ErrURL = errors.New("must be nats://[user:password@]host[:port], or tls:// for TLS, and may name more servers " +
	"after commas")

// Check returns ErrURL unless New accepts a URL.
func Check(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path+u.RawQuery != "" {
			return ErrURL
		}
	}
	return nil
}

// New returns the queue of a server. It does not wait for the server, and connects again whenever the
// connection is lost; Close ends it.
func New(config Config) (*Queue, error) {
	if err := Check(config.URL); err != nil {
		return nil, err
	}
	if config.Heartbeat <= 0 {
		config.Heartbeat = heartbeat
	}
	if config.Attempt <= 0 {
		config.Attempt = attemptWithin
	}
	if config.MaxBytes <= 0 {
		config.MaxBytes = maxBytes
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{config: config, log: config.Log, name: nuid.Next()}
	q.members.init(q.name)
	q.metrics = newMetrics()
	for i := range q.folded {
		q.folded[i].changed = make(chan struct{})
	}
	if err := q.connect(); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *Queue) connect() error {
	conn, err := nats.Connect(q.config.URL, nats.Name("agentproxy"), nats.Timeout(time.Second),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(q.config.Heartbeat/8),
		nats.ReconnectJitter(q.config.Heartbeat/20, q.config.Heartbeat/20),
		nats.ReconnectBufSize(-1), // what is published meanwhile is refused, and does not wait
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				q.log.Warn("the telemetry queue is away", "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { q.log.Info("the telemetry queue is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			q.log.Warn("telemetry queue", "err", err)
		}))
	if err != nil {
		return fmt.Errorf("connect: %w", withoutURL(err))
	}
	q.conn = conn
	if q.js, err = jetstream.New(conn); err == nil {
		_, err = conn.Subscribe(foldedSubject+"*", q.receiveFold)
	}
	if err == nil {
		_, err = conn.Subscribe(workersSubject, q.members.receive)
	}
	if err != nil {
		conn.Close()
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// withoutURL replaces an error that may repeat the URL.
func withoutURL(err error) error {
	var parse *url.Error
	if errors.As(err, &parse) {
		return ErrURL
	}
	return err
}

// Close ends the connection. Consume has returned before.
func (q *Queue) Close() { q.conn.Close() }

// Connected reports whether a server answers.
func (q *Queue) Connected() bool { return q.conn.IsConnected() }

// queueOf returns the queue of an agent.
func queueOf(agentID string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(agentID))
	return int(h.Sum32() % queues)
}

// copies returns how many servers keep each message.
func (q *Queue) copies() int {
	if strings.Count(q.config.URL, ",")+1 >= manyServers {
		return manyServers
	}
	return 1
}
