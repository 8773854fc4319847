package gateway

import (
	"context"
	"net"
	"sync"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/h2"
)

// carrier is a connection with HTTP/2, whose streams are connections of their own.
type carrier struct {
	g    *Gateway
	conn *client.Conn

	mu      sync.Mutex
	streams int
}

// serveHTTP2 serves the streams of a connection until it ends.
func (g *Gateway) serveHTTP2(c *client.Conn) {
	k := &carrier{g: g, conn: c}
	k.wait()
	if !g.stopping.Load() {
		g.h2.Serve(c.Stream, k.serve)
	}
	c.SetIdle(false)
}

// wait bounds how long a connection has no stream.
func (k *carrier) wait() {
	k.conn.Allow(k.g.cfg.Timing.Keep)
	k.conn.SetIdle(true)
	k.g.table.Wait(&k.conn.Slot)
	if k.g.stopping.Load() {
		k.conn.Interrupt(client.Stopped)
	}
}

// began counts a stream.
func (k *carrier) began() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.streams++; k.streams == 1 {
		k.conn.SetIdle(false)
		k.conn.Allow(0) // its streams have limits of their own
	}
}

// ended counts a stream no more.
func (k *carrier) ended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.streams--; k.streams == 0 {
		k.wait()
	}
}

// serve serves a stream. Its connection counts like any other of the client, from the credential to the target.
func (k *carrier) serve(s *h2.Stream) {
	g := k.g
	k.began()
	defer k.ended()
	c := client.NewStream(s, k.conn)
	addr, _ := k.conn.RemoteAddr().(*net.TCPAddr)
	if addr == nil || !g.table.Add(&c.Slot, c, addr.AddrPort().Addr()) {
		_ = s.Close()
		return
	}
	c.Allow(g.cfg.Timing.Header)
	g.conns.Add(c)
	g.serving.Add(1)
	defer context.AfterFunc(s.Context(), func() { c.Interrupt(client.ClientGone) })()
	g.serve(c)
	s.Wait()
	if c.Interrupted() && c.Cause() != client.Exhausted { // what was used up to the last byte ends like a whole one
		s.Reset()
	}
}
