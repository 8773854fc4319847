package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Backoff of a listener that cannot accept: connections that end free descriptors.
const minBackoff, maxBackoff = 5 * time.Millisecond, time.Second

// Retry waits after an error of Accept with backoff, and returns false if the error is
// final. The first call for an outage has a zero backoff. It logs once a second.
func (t *Table) Retry(err error, backoff *time.Duration, log *slog.Logger) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	if t.AcceptFailed(time.Now()) {
		log.Warn("cannot accept connections", "listener", t.cfg.Name, "open", t.Open(), "err", err)
	}
	*backoff = min(max(2**backoff, minBackoff), maxBackoff)
	time.Sleep(*backoff)
	return true
}

// Listener is a net.Listener for net/http whose connections are in a Table.
type Listener struct {
	net.Listener
	table *Table
	log   *slog.Logger
	// Balancers are networks whose connections may begin with a header of the PROXY protocol; one without is a
	// reverse proxy's that names its clients in X-Forwarded-For. A header of any other peer is no request.
	Balancers []netip.Prefix
	// HeaderTimeout is how long a balancer may take for the header, or for the first bytes without one.
	HeaderTimeout time.Duration
}

// Listen returns a listener whose connections are added to the Table when they are
// accepted, and removed when they are closed.
func (t *Table) Listen(l net.Listener, log *slog.Logger) *Listener {
	return &Listener{Listener: l, table: t, log: log}
}

// Accept returns the next connection that the Table admits.
func (l *Listener) Accept() (net.Conn, error) {
	var backoff time.Duration
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if l.table.Retry(err, &backoff, l.log) {
				continue
			}
			return nil, err
		}
		backoff = 0
		c := &Conn{Conn: raw, table: l.table}
		if len(l.Balancers) > 0 && Within(l.Balancers, remote(raw)) {
			c.proxied = &proxied{listener: l}
		}
		if l.table.Add(&c.slot, c, remote(raw)) {
			return c, nil
		}
		_ = raw.Close()
	}
}

// remote returns the address of a connection's client.
func remote(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr()
	}
	return netip.Addr{}
}

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	table   *Table
	slot    Slot
	proxied *proxied // nil: the peer is no balancer
	first   byte     // was read already, if peeked
	peeked  bool
}

// Close closes the connection and removes it from the Table.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.table.Remove(&c.slot)
	return err
}

// Evict implements Owner. The descriptor is free when it returns, whenever the server
// notices.
func (c *Conn) Evict() { _ = c.Close() }

// Unread implements Owner.
func (c *Conn) Unread() bool {
	s, ok := c.Conn.(syscall.Conn)
	return ok && unread(s)
}

// Trust records that the client has shown a right credential. A nil Conn does nothing, as
// do the other methods.
func (c *Conn) Trust() {
	if c != nil {
		c.table.Trust(&c.slot)
	}
}

// Work records that a request of the connection is being served.
func (c *Conn) Work() {
	if c != nil {
		c.table.Work(&c.slot)
	}
}

// Wait records that the connection waits for its client.
func (c *Conn) Wait() {
	if c != nil {
		c.table.Wait(&c.slot)
	}
}

// ShouldClose reports whether the connection should end after its answer: it has shown no
// credential and its listener is nearly full.
func (c *Conn) ShouldClose() bool {
	return c != nil && c.table.NearlyFull() && c.table.isFresh(&c.slot)
}

func (t *Table) isFresh(s *Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.source != nil
}

type connKey struct{}

// Attach sets the hooks of an http.Server by which it updates the Table and requests find their Conn.
func Attach(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			own(c).Wait()
		}
	}
}

// Of returns the connection of a request, nil if it is not one of a Listener.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return own(c)
}

// own returns the Conn of a connection, which TLS may be on; nil if it is none of a Listener.
func own(c net.Conn) *Conn {
	if t, secured := c.(*tls.Conn); secured {
		c = t.NetConn()
	}
	mine, _ := c.(*Conn)
	return mine
}
