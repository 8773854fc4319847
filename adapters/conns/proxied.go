package conns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// proxied is what a connection of a balancer has besides: the header is read by who serves the connection first,
// not by Accept, which one silent balancer would block.
type proxied struct {
	listener *Listener
	once     sync.Once
	client   net.Addr // nil: the peer
	rest     []byte   // was read behind the header
	err      error
}

// begin reads the header once, if there is one.
func (c *Conn) begin() {
	p := c.proxied
	p.once.Do(func() {
		_ = c.Conn.SetReadDeadline(time.Now().Add(p.listener.HeaderTimeout))
		client, rest, err := readProxyHeader(c.Conn)
		_ = c.Conn.SetReadDeadline(time.Time{})
		switch {
		case errors.Is(err, ErrProxyHeader):
			c.table.HeaderRefused(remote(c.Conn), err, p.listener.log)
			err = io.EOF // the server answers nothing to the end of a connection
		case err == nil && client.IsValid():
			p.client = net.TCPAddrFromAddrPort(client)
			if !c.table.Move(&c.slot, client.Addr()) {
				err = io.EOF
			}
		}
		p.rest, p.err = rest, err
	})
}

// readProxyHeader reads from a connection until its header is complete, or it is sure that there is none. What it
// read besides is returned as well.
func readProxyHeader(conn net.Conn) (client netip.AddrPort, rest []byte, err error) {
	buffer := make([]byte, MaxProxyHeader)
	n := 0
	for {
		client, need, err := ParseProxyHeader(buffer[:n])
		switch {
		case err != nil && !announced(buffer[:n]):
			return netip.AddrPort{}, buffer[:n], nil
		case err != nil:
			return client, nil, err
		case need <= n:
			return client, buffer[need:n], nil
		}
		got, err := io.ReadAtLeast(conn, buffer[n:], need-n)
		if n += got; err != nil {
			return client, nil, err
		}
	}
}

// announced reports whether bytes begin a header of the PROXY protocol, whatever follows.
func announced(b []byte) bool {
	return len(b) >= len(sign1) && begins(b, sign1) || len(b) >= len(sign2) && begins(b, sign2)
}

// RemoteAddr returns the address of the client: the peer's or, behind a balancer, that of the header. The first call
// waits for the header.
func (c *Conn) RemoteAddr() net.Addr {
	if c.proxied != nil {
		if c.begin(); c.proxied.client != nil {
			return c.proxied.client
		}
	}
	return c.Conn.RemoteAddr()
}

// Read reads what follows the header.
func (c *Conn) Read(b []byte) (int, error) {
	if c.peeked && len(b) > 0 {
		b[0], c.peeked = c.first, false
		return 1, nil
	}
	p := c.proxied
	if p == nil {
		return c.Conn.Read(b)
	}
	c.begin()
	switch {
	case p.err != nil:
		return 0, p.err
	case len(p.rest) > 0:
		n := copy(b, p.rest)
		if p.rest = p.rest[n:]; len(p.rest) == 0 {
			p.rest = nil
		}
		return n, nil
	}
	return c.Conn.Read(b)
}
