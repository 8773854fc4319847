package gateway

import (
	"runtime/debug"
	"sync"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/secure"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/exitlog"
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
	var backoff time.Duration
	for {
		tcp, err := g.listener.AcceptTCP()
		if err != nil {
			if g.table.Retry(err, &backoff, g.log) {
				continue
			}
			return
		}
		backoff = 0
		c := client.New(tcp)
		c.Allow(g.cfg.Timing.Header)
		if !g.table.Add(&c.Slot, c, remote(tcp)) {
			_ = tcp.Close()
			continue
		}
		g.conns.Add(c)
		g.serving.Add(1)
		go g.serve(c)
	}
}

// serve handles a connection to its end, or until a tunnel takes it over.
func (g *Gateway) serve(c *client.Conn) {
	if t := g.handshake(c); t != nil {
		t.Run() // calls tunnelEnded, which releases c
		return
	}
	g.release(c)
}

// handshake serves a connection until its tunnel is open, and returns nil if it ends
// before. A panic ends this connection alone.
func (g *Gateway) handshake(c *client.Conn) (t *relay.Tunnel) {
	defer func() {
		if cause := recover(); cause != nil {
			g.panicked(cause)
			c.Interrupt(client.Aborted) // ends what other goroutines do for it
			c.CloseTarget()
			t = nil
		}
	}()
	h := handshakes.Get().(*handshake) // not reused after a panic
	h.in.Reset(c.Stream)
	if c.Carrier != nil {
		if !g.stopping.Load() {
			t = g.serveHTTP(c, h)
		}
		h.free()
		return t
	}
	switch first, ok := g.firstByte(c, h); {
	case !ok:
	case first == secure.RecordHandshake:
		t = g.serveTLS(c, h)
	case g.cfg.RefusePlaintext:
		g.refusePlaintext(c, h, first == socks5.Version)
	default:
		t = g.serveInside(c, h, first)
	}
	h.free()
	return t
}

// serveInside serves a client by its first byte, or the first inside TLS.
func (g *Gateway) serveInside(c *client.Conn, h *handshake, first byte) *relay.Tunnel {
	if first == socks5.Version {
		return g.serveSOCKS(c, h)
	}
	return g.serveHTTP(c, h)
}

// panicked counts and logs a panic of a goroutine that serves a connection.
func (g *Gateway) panicked(cause any) {
	g.metrics.panics.Inc()
	g.log.Error("panic while serving a connection; only that connection ends", "panic", cause,
		"stack", string(debug.Stack()))
}

// firstByte waits for the client's first byte; ok is false if none comes. Meanwhile
// the connection is idle, so Stop does not wait for it.
func (g *Gateway) firstByte(c *client.Conn, h *handshake) (b byte, ok bool) {
	c.SetIdle(true)
	defer c.SetIdle(false)
	if g.stopping.Load() || len(g.cfg.Balancers) > 0 && !g.named(c, h) {
		return 0, false
	}
	return g.peek(c, h)
}

// peek waits for a byte that is not read yet.
func (g *Gateway) peek(c *client.Conn, h *handshake) (b byte, ok bool) {
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

// abandon releases a tunnel that does not run.
func (g *Gateway) abandon(t *relay.Tunnel) {
	g.closed(use{number: t.Opening.Number}, exitlog.Finished)
	t.Abandon()
}

// tunnelEnded records the event of a tunnel and releases its connection.
func (g *Gateway) tunnelEnded(t *relay.Tunnel) {
	defer g.release(t.Conn)
	defer func() {
		if cause := recover(); cause != nil {
			g.panicked(cause)
		}
	}()
	g.agents.Leave(&t.Conn.Place)
	why := t.Conn.Cause()
	up, down := t.Bytes()
	g.closed(use{number: t.Opening.Number, bytes: up + down}, endOf(why))
	g.observeTunnel(t, why)
	if why == client.Exhausted || t.Unread() && why != client.Stopped && why != client.Ended {
		g.linger(t.Conn)
	}
}

// release closes a connection and forgets it.
func (g *Gateway) release(c *client.Conn) {
	_ = c.Close()
	g.conns.Remove(c)
	g.table.Remove(&c.Slot)
	g.agents.Leave(&c.Place)
	if e := c.Entry(); e != nil {
		e.Pool.Leave(&c.Member)
		setWorker(c, nil)
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
