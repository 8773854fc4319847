package upstreamproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		if !p.hold(c) {
			_ = c.Close()
			return
		}
		p.wg.Go(func() {
			defer p.drop(c)
			br := bufio.NewReader(c)
			first, err := br.Peek(1)
			switch {
			case err != nil:
			case first[0] == 5:
				p.socks(c, br)
			default:
				p.http(c, br)
			}
		})
	}
}

func (p *Proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = true
	}
	return !p.closed
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// dial connects to a target from an exit. It reaches only loopback; other names need a
// Route.
func (p *Proxy) dial(target string, exit netip.Addr) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	to, ok := p.routes[target]
	if !ok {
		to, ok = p.routes[host]
	}
	p.mu.Unlock()
	if !ok {
		if host == "localhost" {
			host = "127.0.0.1"
		}
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Unmap().IsLoopback() {
			return nil, fmt.Errorf("%s is not of loopback and has no route", host)
		}
		to = net.JoinHostPort(host, port)
	}
	d := net.Dialer{Timeout: time.Minute}
	if !strings.HasPrefix(to, "[") { // an exit has an IPv4 address
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(exit, 0))
	}
	c, err := d.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	if !p.hold(c) {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// relay copies both ways until both sides have finished.
func (p *Proxy) relay(client net.Conn, br io.Reader, target net.Conn, a *account) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(counter{target, p, &a.up}, br)
		_ = target.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(counter{client, p, &a.down}, target)
	_ = client.(*net.TCPConn).CloseWrite()
	wg.Wait()
}

// counter counts what is written, before the other side can receive it.
type counter struct {
	io.Writer
	p *Proxy
	n *int64
}

func (c counter) Write(b []byte) (int, error) {
	c.add(len(b))
	n, err := c.Writer.Write(b)
	c.add(n - len(b))
	return n, err
}

func (c counter) add(n int) {
	c.p.mu.Lock()
	*c.n += int64(n)
	c.p.mu.Unlock()
}

// wait blocks for the delay of Slow, or until the test ends.
func (p *Proxy) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.t.Context().Done():
	}
}
