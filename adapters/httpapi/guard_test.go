package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/httpapi"
	"agentproxy/test/fake"
)

// raw sends the lines of a request to a server and returns the answer.
func raw(t *testing.T, s *httpapi.Server, lines ...string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// listening starts a server.
func listening(t *testing.T, cfg httpapi.Config) *httpapi.Server {
	t.Helper()
	s := httpapi.New(cfg, httpapi.Deps{Log: slog.New(slog.DiscardHandler), IDs: &fake.IDs{}, Clock: fake.NewClock()})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func TestProxyRequestsLearnWhereTheGatewayIs(t *testing.T) {
	t.Parallel()
	s := listening(t, httpapi.Config{Addr: "127.0.0.1:0", GatewayHost: "proxy.example.com", GatewayPort: 8081})
	for _, lines := range [][]string{
		{"CONNECT example.com:443 HTTP/1.1", "Host: example.com:443"},
		{"CONNECT [2001:db8::1]:443 HTTP/1.1", "Host: [2001:db8::1]:443"},
		{"GET http://example.com/ HTTP/1.1", "Host: example.com"},
		{"POST http://127.0.0.1/v1/account/register HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 0"},
	} {
		status, body := raw(t, s, lines...)
		if status != 421 || !strings.Contains(body, `"MISDIRECTED_REQUEST"`) ||
			!strings.Contains(body, `"gateway":"proxy.example.com:8081"`) {
			t.Errorf("%s: %d %s", lines[0], status, body)
		}
	}
}

func TestOnLoopbackForeignHostsAndPagesAreRefused(t *testing.T) {
	t.Parallel()
	s := listening(t, httpapi.Config{Addr: "127.0.0.1:0", PublicURL: "https://api.example.com"})
	own := s.Addr().String()
	const get = "GET /v1/ip HTTP/1.1"
	for _, c := range []struct {
		status int
		code   string
		lines  []string
	}{
		{200, "", []string{get, "Host: " + own}},
		{200, "", []string{get, "Host: localhost:1"}},
		{200, "", []string{get, "Host: API.example.com"}},
		{200, "", []string{"GET /v1/ip HTTP/1.0"}},
		{200, "", []string{get, "Host: " + own, "Origin: http://" + own, "Sec-Fetch-Site: same-origin"}},
		{421, "MISDIRECTED_REQUEST", []string{get, "Host: rebind.attacker.example"}},
		{421, "MISDIRECTED_REQUEST", []string{"POST /v1/account/register HTTP/1.1", "Host: rebind.attacker.example", "Content-Type: text/plain",
			"Origin: http://rebind.attacker.example", "Content-Length: 0"}},
		{421, "MISDIRECTED_REQUEST", []string{"GET /docs HTTP/1.1", "Host: rebind.attacker.example"}},
		{421, "MISDIRECTED_REQUEST", []string{"GET /v1/openapi.json HTTP/1.1", "Host: 192.0.2.1"}},
		{403, "CROSS_SITE_REQUEST", []string{get, "Host: " + own, "Sec-Fetch-Site: cross-site"}},
		{403, "CROSS_SITE_REQUEST", []string{"POST /v1/account/register HTTP/1.1", "Host: " + own, "Content-Type: text/plain",
			"Origin: https://attacker.example", "Content-Length: 0"}},
		{403, "CROSS_SITE_REQUEST", []string{get, "Host: " + own, "Origin: null"}},
	} {
		status, body := raw(t, s, c.lines...)
		if status != c.status || !strings.Contains(body, c.code) {
			t.Errorf("%q: %d %s, want %d %s", c.lines, status, body, c.status, c.code)
		}
	}
	t.Run("on another address the Host is the operator's reverse proxy's affair, outside development mode", func(t *testing.T) {
		for _, dev := range []bool{false, true} {
			s := listening(t, httpapi.Config{Addr: "0.0.0.0:0", Dev: dev})
			status, _ := raw(t, s, get, "Host: rebind.attacker.example")
			if want := map[bool]int{false: 200, true: 421}[dev]; status != want {
				t.Errorf("development %v: %d, want %d", dev, status, want)
			}
		}
	})
}

// Six hundred strangers that announce a large body and send most of it hold little memory,
// and not for long.
func TestBodiesOfStrangersAreSmallAndInTime(t *testing.T) {
	t.Parallel()
	s := listening(t, httpapi.Config{Addr: "127.0.0.1:0"})
	post := []string{"POST /v1/auth/token HTTP/1.1", "Host: localhost"}
	if status, body := raw(t, s, append(post, "Content-Length: 1048576")...); status != 413 {
		t.Errorf("a large body is read: %d %s", status, body)
	}
	chunk := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n8000\r\n%s", strings.Repeat("x", 0x8000))
	if status, body := raw(t, s, append(post, chunk)...); status != 413 {
		t.Errorf("a large body without a length is read: %d %s", status, body)
	}
	if status, body := raw(t, s, append(post, "Content-Length: 100", "", "half")...); status != 400 ||
		!strings.Contains(body, "did not arrive in time") {
		t.Errorf("half a body: %d %s", status, body)
	}
}

// Strangers that only wait do not keep others from the API.
func TestIdleStrangersLeaveTheAPI(t *testing.T) {
	t.Parallel()
	const limit = 16
	s := listening(t, httpapi.Config{Addr: "127.0.0.1:0", Connections: limit})
	for i := range 4 * limit {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			fmt.Fprintf(c, "GET /v1/ip HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
	}
	if status, _ := raw(t, s, "GET /v1/ip HTTP/1.1", "Host: localhost"); status != 200 {
		t.Errorf("%d among strangers", status)
	}
}
