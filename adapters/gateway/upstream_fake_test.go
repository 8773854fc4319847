package gateway_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// seller is a fake upstream proxy: CONNECT and SOCKS5 on one port, detected by the
// first byte. Names under .test are on loopback.
type seller struct {
	t testing.TB
	l net.Listener

	mu       sync.Mutex
	manner   manner
	asked    []string // targets
	users    []string
	in, out  atomic.Int64 // bytes of tunnels
	accepted atomic.Int64
}

// manner is how a seller answers.
type manner struct {
	user, password string
	// http and socks serve the connection instead of the fake, after the head of
	// CONNECT or the SOCKS5 request.
	http, socks func(net.Conn)
	// behind is written in one piece with the answer that opens a tunnel.
	behind string
}

func newSeller(t testing.TB, user, password string) *seller {
	return sellerAt(t, listen(t), user, password)
}

// sellerAt is newSeller at a listener.
func sellerAt(t testing.TB, l net.Listener, user, password string) *seller {
	s := &seller{t: t, l: l, manner: manner{user: user, password: password}}
	go serve(s.l, func(c net.Conn) {
		s.accepted.Add(1)
		r := bufio.NewReader(c)
		if first, err := r.Peek(1); err != nil {
			return
		} else if first[0] == 5 {
			s.serveSOCKS(c, r)
			return
		}
		s.serveHTTP(c, r)
	})
	return s
}

// endpoint is the fake as an operator would configure it.
func (s *seller) endpoint(p session.Protocol) procurement.Endpoint {
	addr := netip.MustParseAddrPort(s.l.Addr().String())
	return procurement.Endpoint{Protocol: p, Host: addr.Addr().String(), Port: addr.Port(),
		User: s.how().user, Password: s.how().password, Trusted: true}
}

// set changes how the next connections are served.
func (s *seller) set(edit func(*manner)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.manner)
}

func (s *seller) how() manner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manner
}

// answers makes CONNECT be answered by a script.
func (s *seller) answers(f func(net.Conn)) { s.set(func(m *manner) { m.http = f }) }

// replies makes a SOCKS5 request be answered by a script.
func (s *seller) replies(f func(net.Conn)) { s.set(func(m *manner) { m.socks = f }) }

// targets returns the requested targets and the user names.
func (s *seller) targets() (targets, users []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.users)
}

func (s *seller) note(user, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.users = append(s.asked, target), append(s.users, user)
}

func (s *seller) serveHTTP(c net.Conn, r *bufio.Reader) {
	m := s.how()
	req, err := http.ReadRequest(r)
	if err != nil {
		s.t.Errorf("the upstream cannot read what it is asked: %v", err)
		return
	}
	// net/http reads Basic credentials of Authorization only.
	req.Header.Set("Authorization", req.Header.Get("Proxy-Authorization"))
	user, password, _ := req.BasicAuth()
	s.note(user, req.RequestURI)
	if len(req.Header) > 2 || req.Method != "CONNECT" || req.Host != req.RequestURI {
		s.t.Errorf("the upstream was asked %s %s of %s with %v", req.Method, req.RequestURI, req.Host, req.Header)
	}
	switch {
	case m.http != nil:
		m.http(c)
		return
	case m.password != "" && (user != m.user || password != m.password):
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
		return
	}
	target, err := dialTest(req.RequestURI)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Session: 1\r\n\r\n"+m.behind)
	s.relay(c, r, target)
}

func (s *seller) serveSOCKS(c net.Conn, r *bufio.Reader) {
	m := s.how()
	b := make([]byte, 300)
	take := func(n int) []byte { _, _ = io.ReadFull(r, b[:n]); return b[:n] }
	method := take(3)[2]
	if want := byte(2); m.password == "" && method != 0 || m.password != "" && method != want {
		_, _ = c.Write([]byte{5, 0xff})
		return
	}
	_, _ = c.Write([]byte{5, method})
	user := ""
	if method == 2 {
		user = string(take(int(take(2)[1])))
		password := string(take(int(take(1)[0])))
		if user != m.user || password != m.password {
			_, _ = c.Write([]byte{1, 1})
			return
		}
		_, _ = c.Write([]byte{1, 0})
	}
	host := ""
	switch kind := take(4)[3]; kind {
	case 1:
		host = netip.AddrFrom4([4]byte(take(4))).String()
	case 4:
		host = netip.AddrFrom16([16]byte(take(16))).String()
	case 3:
		host = string(take(int(take(1)[0])))
	}
	addr := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(take(2)))))
	s.note(user, addr)
	if m.socks != nil {
		m.socks(c)
		return
	}
	target, err := dialTest(addr)
	if err != nil {
		_, _ = c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	_, _ = io.WriteString(c, "\x05\x00\x00\x03\x06a.test\x12\x34"+m.behind)
	s.relay(c, r, target)
}

func dialTest(addr string) (net.Conn, error) {
	if host, port, _ := net.SplitHostPort(addr); strings.HasSuffix(host, ".test") {
		addr = "127.0.0.1:" + port
	}
	return net.Dial("tcp", addr)
}

// relay moves bytes both ways and passes ends on.
func (s *seller) relay(c net.Conn, r *bufio.Reader, target net.Conn) {
	defer target.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, _ := io.Copy(c, target)
		s.out.Add(n)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	n, _ := io.Copy(target, r)
	s.in.Add(n)
	_ = target.(*net.TCPConn).CloseWrite()
	<-done
}

// via puts a session behind upstream proxies. The addresses of the exits are
// unknown.
func (b *fakeCore) via(id string, proxies ...procurement.Endpoint) {
	b.change(id, func(r *traffic.Route) {
		r.Upstreams = proxies
		r.Exits = make([]session.Exit, len(proxies))
	})
}

// writes is a script that writes and ends the connection.
func writes(format string, args ...any) func(net.Conn) {
	return func(c net.Conn) {
		fmt.Fprintf(c, format, args...)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
}
