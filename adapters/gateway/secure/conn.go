// Package secure terminates TLS on connections of the gateway's clients.
package secure

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// RecordHandshake is the first byte that a TLS client sends (RFC 8446 section 5.1).
const RecordHandshake = 0x16

// HandshakeFailure is the alert for a client while there is no certificate: a fatal handshake_failure
// (RFC 8446 section 6).
var HandshakeFailure = []byte{0x15, 3, 3, 0, 2, 2, 40}

// closeGrace is how long Close waits to write the alert that ends the data.
const closeGrace = 100 * time.Millisecond

// Conn is the server's side of a TLS connection.
type Conn struct {
	*tls.Conn
	raw    *raw
	unread []byte
}

// Server returns the TLS connection of a client. early is what was read of it already; it is kept.
func Server(tcp *net.TCPConn, early []byte, cfg *tls.Config) *Conn {
	r := &raw{TCPConn: tcp, early: early}
	return &Conn{Conn: tls.Server(r, cfg), raw: r}
}

// Unread has Read return bytes again that it returned. The Conn keeps them. ReadNow does not return them.
func (c *Conn) Unread(p []byte) { c.unread = p }

// Read reads what the client sent.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil
	}
	return n, nil
}

// CloseWrite ends what is sent, in TLS and below it. The other direction goes on.
func (c *Conn) CloseWrite() error {
	err := c.Conn.CloseWrite()
	if down := c.raw.CloseWrite(); err == nil {
		err = down
	}
	return err
}

// Close closes the connection. It waits at most closeGrace for a client that does not read.
func (c *Conn) Close() error {
	_ = c.raw.SetWriteDeadline(time.Now().Add(closeGrace))
	_ = c.Conn.CloseWrite()
	return c.raw.Close()
}

// SyscallConn returns the descriptor, for ReadNow.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// raw is the socket below TLS. Its bytes come from early first.
type raw struct {
	*net.TCPConn
	early []byte
	now   int // the descriptor plus one while a read must not wait; 0 else
}

// Read reads from the socket.
func (r *raw) Read(p []byte) (int, error) {
	switch {
	case len(r.early) > 0:
		n := copy(p, r.early)
		if r.early = r.early[n:]; len(r.early) == 0 {
			r.early = nil
		}
		return n, nil
	case r.now > 0:
		return readNow(r.now-1, p)
	}
	return r.TCPConn.Read(p)
}
