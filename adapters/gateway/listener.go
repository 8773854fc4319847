package gateway

import (
	"errors"
	"net"
	"sync"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/socks5"
)

// handshake is the scratch memory of one connection until its tunnel is open, or
// while it sends plain requests. It is pooled: an idle tunnel has none.
type handshake struct {
	in      http1.Reader
	request http1.RequestHead
	answer  http1.ResponseHead
	socks   socks5.Server
	out     []byte // a request head, or an answer of our own
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

// accept serves every connection until the listener is closed. When descriptors
// run out it waits for tunnels to end instead of giving up.
func (g *Gateway) accept() {
	const firstPause, lastPause = 5 * time.Millisecond, time.Second
	var pause time.Duration
	for {
		tcp, err := g.listener.AcceptTCP()
		switch {
		case err == nil:
			pause = 0
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if pause == 0 {
				g.log.Warn("gateway cannot accept", "err", err)
			}
			pause = min(max(2*pause, firstPause), lastPause)
			time.Sleep(pause)
			continue
		}
		c := &conn{client: tcp}
		c.allow(g.cfg.Timing.Header)
		g.conns.add(c)
		g.serving.Add(1)
		go g.serve(c)
	}
}

// serve takes a connection to its end, or to the point where a tunnel takes over.
func (g *Gateway) serve(c *conn) {
	h := handshakes.Get().(*handshake)
	h.in.Reset(c.client)
	var t *tunnel
	switch first, begun := g.firstByte(c, h); {
	case !begun:
	case first == socks5.Version:
		t = g.serveSOCKS(c, h)
	default:
		t = g.serveHTTP(c, h)
	}
	h.free()
	if t != nil {
		t.run() // and release
		return
	}
	g.release(c)
}

// firstByte waits for the client to say something; false: it will not. Until then
// the connection is as idle as one between two requests, and Stop does not wait.
func (g *Gateway) firstByte(c *conn, h *handshake) (b byte, ok bool) {
	c.idle.Store(true)
	defer c.idle.Store(false)
	if g.stopping.Load() {
		return 0, false
	}
	first, err := h.in.Peek(1)
	if err != nil {
		return 0, false
	}
	return first[0], true
}

// release ends a connection for good.
func (g *Gateway) release(c *conn) {
	_ = c.client.Close()
	g.conns.remove(c)
	if e := c.entry.Load(); e != nil {
		e.unpin()
	}
	g.serving.Done()
}

// linger ends what we have to say to a client and reads on for a moment: closing
// a socket with unread bytes makes the kernel send a reset, which can destroy
// our last words before the client has read them. What is read is never run.
func (g *Gateway) linger(c *conn) {
	if g.stopping.Load() {
		return
	}
	_ = c.client.SetDeadline(time.Now().Add(g.cfg.Timing.Linger))
	c.quiet.Store(0)
	if c.client.CloseWrite() != nil {
		return
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	for {
		if _, err := c.client.Read(b[:]); err != nil {
			return
		}
	}
}
