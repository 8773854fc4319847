package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	socks "golang.org/x/net/proxy"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/upstreamproxy"
)

// site starts a target that echoes the body and returns the client's address.
func site(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-From", host)
		_, _ = w.Write(body)
	}))
	start(s)
	t.Cleanup(s.Close)
	return s
}

// wire counts what passes on the client's side.
type wire struct {
	net.Conn
	up, down int64
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.down += int64(n)
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.up += int64(n)
	return n, err
}

func dial(t *testing.T, proxy *url.URL) *wire {
	t.Helper()
	c, err := net.DialTimeout("tcp", proxy.Host, soon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(soon))
	return &wire{Conn: c}
}

// dialled hands out one connection.
type dialled struct{ c net.Conn }

func (d dialled) Dial(string, string) (net.Conn, error) { return d.c, nil }

// passage opens a tunnel through a session by the protocol of its address, and fails
// the test if it is refused. The handshake is not counted.
func passage(t *testing.T, address, target string) *wire {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, u)
	password, _ := u.User.Password()
	if strings.HasPrefix(u.Scheme, "socks5") {
		d, err := socks.SOCKS5("tcp", u.Host, &socks.Auth{User: u.User.Username(), Password: password}, dialled{c})
		if err == nil {
			_, err = d.Dial("tcp", target)
		}
		if err != nil {
			t.Fatalf("SOCKS5 to %s: %v", target, err)
		}
	} else {
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, proxyAuthorization(u))
		var head []byte
		for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b[0]) {
			if _, err := io.ReadFull(c, b); err != nil {
				t.Fatalf("after %q: %v", head, err)
			}
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
			rest, _ := io.ReadAll(c)
			t.Fatalf("CONNECT %s: %s%s", target, head, rest)
		}
	}
	c.up, c.down = 0, 0
	return c
}

func proxyAuthorization(u *url.URL) string {
	password, _ := u.User.Password()
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
}

// parcel is what is sent to a target and back.
var parcel = strings.Repeat("0123456789abcdef", 4096) // 64 KiB

// trade sends a request over a connection and reads the answer and all that comes
// after it. It returns where the target was reached from.
func trade(t *testing.T, c io.ReadWriter, request string) (from string) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(c, request); sent <- err }()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || string(body) != parcel {
		t.Fatalf("%d with %d bytes, %v: %.200s", res.StatusCode, len(body), err, body)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, c)
	return res.Header.Get("X-From")
}

func post(target string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", target, len(parcel), parcel)
}

// paths are the ways of a client through a session. Each returns where the target
// was reached from, and what passed on the client's wire.
var paths = map[string]func(t *testing.T, d apiclient.Session) (from string, up, down int64){
	"plain HTTP": func(t *testing.T, d apiclient.Session) (string, int64, int64) {
		target := site(t, (*httptest.Server).Start).Listener.Addr().String()
		u, err := url.Parse(d.Proxy.HTTPURL)
		if err != nil {
			t.Fatal(err)
		}
		request := strings.Replace(post(target), "POST /", "POST http://"+target+"/", 1)
		head, body, _ := strings.Cut(request, "\r\n\r\n")
		c := dial(t, u)
		from := trade(t, c, head+"\r\n"+proxyAuthorization(u)+"\r\n"+body)
		return from, int64(len(request)), c.down
	},
	"CONNECT and TLS": func(t *testing.T, d apiclient.Session) (string, int64, int64) { return secured(t, d.Proxy.HTTPURL) },
	"SOCKS5 and TLS":  func(t *testing.T, d apiclient.Session) (string, int64, int64) { return secured(t, d.Proxy.SOCKS5URL) },
}

// secured exchanges data with a target over TLS.
func secured(t *testing.T, address string) (from string, up, down int64) {
	t.Helper()
	s := site(t, (*httptest.Server).StartTLS)
	c := passage(t, address, s.Listener.Addr().String())
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "example.com", nil
	from = trade(t, tls.Client(c, config), post("example.com"))
	_, _ = io.Copy(io.Discard, c) // the target's last words
	_ = c.Close()
	return from, c.up, c.down
}

// door serves the proxies of a fake at loopback addresses, all on one port, as sellers
// of addresses deliver them.
func door(t *testing.T, p *upstreamproxy.Proxy, addrs ...string) (list []netip.Addr, port uint16) {
	t.Helper()
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr, port).String())
		if err != nil {
			t.Fatal(err)
		}
		port = l.Addr().(*net.TCPAddr).AddrPort().Port()
		list = append(list, addr)
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(func() { cancel(); _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go forward(ctx, c, p.Addr().String())
			}
		}()
	}
	return list, port
}

func forward(ctx context.Context, c net.Conn, to string) {
	defer c.Close()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close(); _ = up.Close() })()
	go func() { _, _ = io.Copy(up, c); _ = up.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(c, up)
	_ = c.(*net.TCPConn).CloseWrite()
}
