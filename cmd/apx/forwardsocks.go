package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/socks5"
)

// socks serves one connection. A password is neither asked for nor known.
func (f *forwarder) socks(ctx context.Context, c *buffered) {
	var s socks5.Server
	var target hostport.Target
	err := s.Greet(c, c, socks5.NoPassword)
	if err == nil {
		target, err = s.Request(c)
	}
	if err != nil {
		if bad, ok := errors.AsType[*socks5.RequestError](err); ok {
			_ = s.Reply(c, bad.Reply, netip.AddrPort{})
		}
		c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	up, refused, err := f.tunnel(ctx, net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port))))
	if err != nil || refused != nil {
		_ = s.Reply(c, replyOf(refused), netip.AddrPort{})
		c.Close()
		return
	}
	if err := s.Reply(c, socks5.Succeeded, netip.AddrPort{}); err != nil {
		up.Close()
		c.Close()
		return
	}
	relay(c, up)
}

// replyOf returns the reply nearest to a refusal of the gateway.
func replyOf(refused *http.Response) socks5.Reply {
	if refused == nil {
		return socks5.GeneralFailure
	}
	defer refused.Body.Close()
	switch refused.StatusCode {
	case http.StatusForbidden:
		return socks5.NotAllowed
	case http.StatusGatewayTimeout:
		return socks5.TTLExpired
	case http.StatusBadGateway:
		return socks5.HostUnreachable
	}
	return socks5.GeneralFailure
}

// buffered is a connection of which some bytes were read already.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Read reads those bytes first.
func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// CloseWrite ends the sending side.
func (b *buffered) CloseWrite() error { return closeWrite(b.Conn) }

// slotted is a connection that frees its slot when it is closed.
type slotted struct {
	net.Conn
	free func()
}

// Close closes the connection.
func (s *slotted) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// CloseWrite ends the sending side.
func (s *slotted) CloseWrite() error { return closeWrite(s.Conn) }

func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// closing closes a connection with the body that comes from it.
type closing struct {
	io.Reader
	c io.Closer
}

// Close closes the connection.
func (c closing) Close() error { return c.c.Close() }

// handed is a listener of connections that were looked at before.
type handed struct {
	net.Listener
	conns chan net.Conn
	done  <-chan struct{}
}

// Accept returns the next connection.
func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// relay copies both ways until both have ended.
func relay(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	var wait sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wait.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if err != nil { // one end is gone: the other must not wait for it
				a.Close()
				b.Close()
				return
			}
			_ = closeWrite(way[0])
		})
	}
	wait.Wait()
}
