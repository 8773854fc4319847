package e2e_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"agentproxy/test/freeport"
)

// targets are those that a failure needs.
type targets struct {
	plain, secure, expired, modern, silent, closed, reset, garbage, wide, cut string
	trust                                                                     string // a file with the certificate of secure
	trustExpired                                                              string
}

func failingTargets(t *testing.T) (s targets) {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(max(status, 200))
		fmt.Fprintln(w, "Just a moment...")
	})
	plain := httptest.NewServer(answer)
	t.Cleanup(plain.Close)
	s.plain = plain.Listener.Addr().String()
	secured := func(c tls.Certificate, least uint16) string {
		site := httptest.NewUnstartedServer(answer)
		site.TLS = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: least}
		site.Config.ErrorLog = log.New(io.Discard, "", 0)
		site.StartTLS()
		t.Cleanup(site.Close)
		_, port, _ := net.SplitHostPort(site.Listener.Addr().String())
		return "https://localhost:" + port
	}
	good, file := certificate(t, time.Now().AddDate(0, 1, 0), "localhost")
	old, oldFile := certificate(t, time.Now().AddDate(0, -1, 0), "localhost")
	s.trust, s.trustExpired = file, oldFile
	s.secure, s.modern, s.expired = secured(good, tls.VersionTLS12), secured(good, tls.VersionTLS13), secured(old, tls.VersionTLS12)
	s.cut = "https://localhost:" + cutting(t, good)
	s.silent = "127.0.0.1:" + silent(t)
	s.closed = freeport.Address(t)
	s.reset = accept(t, func(c *net.TCPConn) { _ = c.SetLinger(0) })
	s.garbage = listen(t, func(w io.Writer) { fmt.Fprint(w, "this is no HTTP\r\n\r\n") })
	everywhere, err := net.Listen("tcp4", "0.0.0.0:0")
	succeeds(t, err)
	t.Cleanup(func() { everywhere.Close() })
	_, s.wide, _ = net.SplitHostPort(everywhere.Addr().String())
	return s
}

// cutting starts a server that ends each connection after the request that TLS carries, and returns its port.
func cutting(t *testing.T, c tls.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{c}})
	succeeds(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				// What the client sends meanwhile is read: closing before would reset the connection.
				raw := conn.(*tls.Conn).NetConn().(*net.TCPConn)
				_ = raw.CloseWrite()
				_ = raw.SetReadDeadline(time.Now().Add(soon))
				_, _ = io.Copy(io.Discard, raw)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// accept starts a server that ends each connection as a function prepares it, when the client has written.
func accept(t *testing.T, prepare func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	succeeds(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = c.Read(make([]byte, 1))
				prepare(c.(*net.TCPConn))
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}
