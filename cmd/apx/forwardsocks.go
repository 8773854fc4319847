package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// What SOCKS5 has for us: RFC 1928.
const (
	socksVersion = 5
	socksConnect = 1
	socksIPv4    = 1
	socksName    = 3
	socksIPv6    = 4

	socksDone        = 0
	socksFailed      = 1
	socksForbidden   = 2
	socksUnreachable = 4
	socksSilent      = 6
	socksNoCommand   = 7
)

// socks serves one connection.
func (f *forwarder) socks(ctx context.Context, c *buffered) {
	target, reply, err := socksRequest(c)
	if err != nil {
		if reply != 0 {
			_, _ = c.Write(socksReply(reply))
		}
		c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	up, refused, err := f.tunnel(ctx, target)
	if err != nil || refused != nil {
		_, _ = c.Write(socksReply(replyOf(refused)))
		c.Close()
		return
	}
	if _, err := c.Write(socksReply(socksDone)); err != nil {
		up.Close()
		c.Close()
		return
	}
	relay(c, up)
}

// replyOf returns the reply nearest to a refusal of the gateway.
func replyOf(refused *http.Response) byte {
	if refused == nil {
		return socksFailed
	}
	defer refused.Body.Close()
	switch refused.StatusCode {
	case http.StatusForbidden:
		return socksForbidden
	case http.StatusGatewayTimeout:
		return socksSilent
	case http.StatusBadGateway:
		return socksUnreachable
	}
	return socksFailed
}

func socksReply(code byte) []byte { return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0} }

var errSOCKS = errors.New("not a request of SOCKS5 that is served")

// socksRequest reads the greeting and the request, and returns the target as host:port. With an error
// comes the reply that the client gets; 0: none.
func socksRequest(c *buffered) (target string, reply byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return "", 0, err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(c, methods); err != nil {
		return "", 0, err
	}
	// A password is neither asked for nor known.
	if bytes.IndexByte(methods, 0) < 0 {
		_, err := c.Write([]byte{socksVersion, 0xff})
		return "", 0, errors.Join(errSOCKS, err)
	}
	if _, err := c.Write([]byte{socksVersion, 0}); err != nil {
		return "", 0, err
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(c, request); err != nil {
		return "", 0, err
	}
	if request[0] != socksVersion || request[1] != socksConnect {
		return "", socksNoCommand, errSOCKS
	}
	host, err := socksHost(c, request[3])
	if err != nil {
		return "", socksFailed, err
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(c, port); err != nil {
		return "", 0, err
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), 0, nil
}

// socksHost reads an address of a kind. A name with what no host has is refused: it goes into a header.
func socksHost(r io.Reader, kind byte) (string, error) {
	size := map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[kind]
	if kind == socksName {
		length := make([]byte, 1)
		if _, err := io.ReadFull(r, length); err != nil {
			return "", err
		}
		size = int(length[0])
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	switch {
	case size == 0:
		return "", errSOCKS
	case kind != socksName:
		return net.IP(text).String(), nil
	}
	for _, b := range text {
		if b <= ' ' || b >= 0x7f {
			return "", errSOCKS
		}
	}
	return string(text), nil
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
