package conns

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// recordHandshake is the first byte of a client that uses TLS (RFC 8446 section 5.1): no method of HTTP begins
// with it.
const recordHandshake = 0x16

// Secured is a listener of connections with TLS or plain text, detected by their first byte. Accept returns a
// *tls.Conn, whose handshake is to be done, or a *Conn.
type Secured struct {
	*Listener
	cfg     *tls.Config
	timeout time.Duration
	once    sync.Once
	ready   chan net.Conn
	ended   chan struct{} // closed after failed is set
	failed  error
	closed  chan struct{}
	close   sync.Once
}

// Secure returns a listener for TLS. A client has a timeout to send its first byte, and no other waits for it.
func (l *Listener) Secure(cfg *tls.Config, timeout time.Duration) *Secured {
	return &Secured{Listener: l, cfg: cfg, timeout: timeout, ready: make(chan net.Conn), ended: make(chan struct{}),
		closed: make(chan struct{})}
}

// Accept returns the next connection that has sent a byte.
func (s *Secured) Accept() (net.Conn, error) {
	s.once.Do(func() { go s.welcome() })
	select {
	case c := <-s.ready:
		return c, nil
	case <-s.ended:
		return nil, s.failed
	}
}

// welcome accepts until the listener fails. The Table bounds how many connections wait.
func (s *Secured) welcome() {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			s.failed = err
			close(s.ended)
			return
		}
		go s.detect(c.(*Conn))
	}
}

func (s *Secured) detect(c *Conn) {
	first, err := c.peek(s.timeout)
	if err != nil {
		_ = c.Close()
		return
	}
	var found net.Conn = c
	if first == recordHandshake {
		found = tls.Server(c, s.cfg)
	}
	select {
	case s.ready <- found:
	case <-s.closed:
		_ = c.Close()
	}
}

// Close closes the listener, and what has not been returned by Accept.
func (s *Secured) Close() error {
	s.close.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

// peek waits for the first byte, which Read returns again.
func (c *Conn) peek(timeout time.Duration) (byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(timeout))
	var b [1]byte
	for {
		n, err := c.Read(b[:])
		if n == 1 {
			c.first, c.peeked = b[0], true
			return b[0], c.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return 0, err
		}
	}
}
