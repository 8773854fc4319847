package gateway

import (
	"errors"
	"net"
	"sync"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/socks5"
)

// handshake is the scratch memory of one connection until its tunnel is open, or
// while it sends plain requests. It is pooled: an idle tunnel has none.
type handshake struct {
	in      http1.Reader
	request http1.RequestHead
	answer  http1.ResponseHead
	socks   socks5.Server
	out     []byte // a request head, or an answer of the gateway itself
	reply   []byte // a response head
}

var handshakes = sync.Pool{New: func() any { return &handshake{out: make([]byte, 0, 1<<10)} }}

func (h *handshake) free() {
	h.in.Reset(nil)
	if cap(h.out) > 8<<10 {
		h.out = make([]byte, 0, 1<<10)
	}
	handshakes.Put(h)
}

// accept serves every connection until the listener is closed. When descriptors run
// out it retries with backoff, because tunnels that end free some.
func (g *Gateway) accept() {
	const minBackoff, maxBackoff = 5 * time.Millisecond, time.Second
	var backoff time.Duration
	for {
		tcp, err := g.listener.AcceptTCP()
		switch {
		case err == nil:
			backoff = 0
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if backoff == 0 {
				g.log.Warn("gateway cannot accept", "err", err)
			}
			backoff = min(max(2*backoff, minBackoff), maxBackoff)
			time.Sleep(backoff)
			continue
		}
		c := client.New(tcp)
		c.Allow(g.cfg.Timing.Header)
		g.conns.Add(c)
		g.serving.Add(1)
		go g.serve(c)
	}
}

// serve handles a connection to its end, or until a tunnel takes it over.
func (g *Gateway) serve(c *client.Conn) {
	h := handshakes.Get().(*handshake)
	h.in.Reset(c.TCPConn)
	var t *relay.Tunnel
	switch first, ok := g.firstByte(c, h); {
	case !ok:
	case first == socks5.Version:
		t = g.serveSOCKS(c, h)
	default:
		t = g.serveHTTP(c, h)
	}
	h.free()
	if t != nil {
		t.Run() // calls tunnelEnded, which releases c
		return
	}
	g.release(c)
}

// firstByte waits for the client's first byte; ok is false if none comes. Meanwhile
// the connection is idle, so Stop does not wait for it.
func (g *Gateway) firstByte(c *client.Conn, h *handshake) (b byte, ok bool) {
	c.SetIdle(true)
	defer c.SetIdle(false)
	if g.stopping.Load() {
		return 0, false
	}
	first, err := h.in.Peek(1)
	if err != nil {
		return 0, false
	}
	return first[0], true
}

// tunnelEnded records the event of a tunnel and releases its connection.
func (g *Gateway) tunnelEnded(t *relay.Tunnel) {
	why := t.Conn.Cause()
	g.observeTunnel(t, why)
	if why == client.Exhausted || t.Unread() && why != client.Stopped && why != client.Ended {
		g.linger(t.Conn)
	}
	g.release(t.Conn)
}

// release closes a connection and forgets it.
func (g *Gateway) release(c *client.Conn) {
	_ = c.Close()
	g.conns.Remove(c)
	if e := c.Entry(); e != nil {
		e.Unpin()
	}
	g.serving.Done()
}

// discards are what linger reads into.
var discards = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// linger closes the write half of a connection and reads for a moment what the
// client still sends: closing a socket with unread bytes makes the kernel send a
// reset, which can destroy the last answer before the client has read it.
func (g *Gateway) linger(c *client.Conn) {
	if g.stopping.Load() {
		return
	}
	_ = c.SetDeadline(time.Now().Add(g.cfg.Timing.Linger))
	c.Allow(0)
	if c.CloseWrite() != nil {
		return
	}
	b := discards.Get().(*[16 << 10]byte)
	defer discards.Put(b)
	for {
		if _, err := c.Read(b[:]); err != nil {
			return
		}
	}
}
