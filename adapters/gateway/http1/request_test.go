package http1_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
)

func readRequest(s string) (*http1.RequestHead, *http1.Reader, error) {
	var h http1.RequestHead
	r := http1.NewReader(strings.NewReader(s))
	return &h, r, http1.ReadRequest(r, &h)
}

func mustRequest(t testing.TB, s string) *http1.RequestHead {
	t.Helper()
	h, _, err := readRequest(s)
	if err != nil {
		t.Fatalf("ReadRequest(%q): %v", s, err)
	}
	return h
}

// status is the HTTP status of a refusal, 0 if err is none.
func status(err error) int {
	var e *http1.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

func TestTheTargetIsReadFromTheRequestLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		line, host string
		port       uint16
		path       string
	}{
		{"CONNECT example.com:443 HTTP/1.1", "example.com", 443, ""},
		{"CONNECT [2001:db8::1]:8443 HTTP/1.1", "2001:db8::1", 8443, ""},
		{"CONNECT 2001:db8::1:443 HTTP/1.1", "2001:db8::1", 443, ""},
		{"CONNECT 2001:db8:0:1:2:3:4:5:443 HTTP/1.1", "2001:db8:0:1:2:3:4:5", 443, ""},
		{"CONNECT ::1:80 HTTP/1.1", "::1", 80, ""},
		{"CONNECT ::ffff:192.0.2.1:80 HTTP/1.1", "::ffff:192.0.2.1", 80, ""},
		{"CONNECT 192.0.2.1:1 HTTP/1.0", "192.0.2.1", 1, ""},
		{"CONNECT under_score.example.:65535 HTTP/1.1", "under_score.example.", 65535, ""},
		{"GET http://example.com/ HTTP/1.1", "example.com", 80, "/"},
		{"GET http://example.com HTTP/1.1", "example.com", 80, ""},
		{"GET HTTP://Example.com:8080/a/b?c=d&e HTTP/1.1", "Example.com", 8080, "/a/b?c=d&e"},
		{"GET http://example.com?q=1 HTTP/1.1", "example.com", 80, "?q=1"},
		{"GET http://[::1]:81/?a=http://b/@c HTTP/1.1", "::1", 81, "/?a=http://b/@c"},
		{"GET http://h/ü HTTP/1.1", "h", 80, "/ü"},
		{"OPTIONS http://h HTTP/1.0", "h", 80, ""},
	} {
		t.Run(tc.line, func(t *testing.T) {
			h := mustRequest(t, tc.line+"\r\nHost: other.example\r\n\r\n")
			if got, want := h.Target(), (hostport.Target{Host: tc.host, Port: tc.port}); got != want {
				t.Errorf("target %v, want %v", got, want)
			}
			if got := string(h.Path()); got != tc.path {
				t.Errorf("path %q, want %q", got, tc.path)
			}
		})
	}
}

func TestHostOfConnectMayLackBrackets(t *testing.T) {
	t.Parallel()
	h := mustRequest(t, "CONNECT 2001:db8::1:443 HTTP/1.1\r\nHost: 2001:db8::1:443\r\n\r\n")
	if got, want := h.Target(), (hostport.Target{Host: "2001:db8::1", Port: 443}); got != want {
		t.Errorf("target %v, want %v", got, want)
	}
}

func TestWhatFollowsTheHeadStaysAvailable(t *testing.T) {
	t.Parallel()
	for _, surplus := range []string{"", "\x16\x03\x01", strings.Repeat("GET / ", 500)} {
		_, r, err := readRequest("CONNECT a:443 HTTP/1.1\r\n\r\n" + surplus)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(surplus, string(r.Buffered())) {
			t.Errorf("%d bytes buffered are not the beginning of the surplus", len(r.Buffered()))
		}
		if got, _ := io.ReadAll(r); string(got) != surplus {
			t.Errorf("read %d bytes after the head, want %d", len(got), len(surplus))
		}
	}
}

func TestAHeadMayArriveByteByByte(t *testing.T) {
	t.Parallel()
	head := "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 20000) + "\r\n\r\n"
	r := http1.NewReader(iotest.OneByteReader(strings.NewReader(head + head)))
	for range 2 {
		var h http1.RequestHead
		if err := http1.ReadRequest(r, &h); err != nil || h.Metered() != len(head) {
			t.Fatalf("%d bytes of head, %v; want %d", h.Metered(), err, len(head))
		}
	}
}

func TestAConnectionThatEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		src  io.Reader
		want error
	}{
		{"between requests is EOF", strings.NewReader(""), io.EOF},
		{"within a head is unexpected", strings.NewReader("GET http://a/ HT"), io.ErrUnexpectedEOF},
		{"with an error keeps it", io.MultiReader(strings.NewReader("GET "), iotest.ErrReader(broken)), broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var h http1.RequestHead
			if err := http1.ReadRequest(http1.NewReader(tc.src), &h); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestHeadsAreBounded(t *testing.T) {
	t.Parallel()
	const line = "GET http://a/ HTTP/1.1\r\nHost: a\r\n"
	fill := func(total int) string {
		return line + "X: " + strings.Repeat("y", total-len(line)-len("X: \r\n\r\n")) + "\r\n\r\n"
	}
	for _, tc := range []struct {
		name, head string
		want       int
	}{
		{"32 KiB pass", fill(http1.MaxHead), 0},
		{"one byte more is 431", fill(http1.MaxHead + 1), 431},
		{"a line without end is 431", line + strings.Repeat("y", 64<<10), 431},
		{"128 fields pass", line + strings.Repeat("X: y\r\n", 127) + "\r\n", 0},
		{"129 fields are 431", line + strings.Repeat("X: y\r\n", 128) + "\r\n", 431},
		{"10,000 fields are 431", line + strings.Repeat("X:\r\n", 10000) + "\r\n", 431},
		{"32 connection options pass", line + "Connection: " + strings.Repeat("x,", 32) + "\r\n\r\n", 0},
		{"33 connection options are 400", line + "Connection: " + strings.Repeat("x,", 33) + "\r\n\r\n", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := readRequest(tc.head)
			if got := status(err); got != tc.want || tc.want == 0 && err != nil {
				t.Errorf("status %d (%v), want %d", got, err, tc.want)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct {
		name, field, user, password string
		ok                          bool
	}{
		{"basic", "Basic " + b64("user:secret"), "user", "secret", true},
		{"the scheme has no case", "bAsIc " + b64("u:p"), "u", "p", true},
		{"spaces before them", "Basic   " + b64("u:p"), "u", "p", true},
		{"a colon in the password", "Basic " + b64("u:p:q"), "u", "p:q", true},
		{"empty ones", "Basic " + b64(":"), "", "", true},
		{"no colon", "Basic " + b64("user"), "", "", false},
		{"another scheme", "Bearer " + b64("u:p"), "", "", false},
		{"no base64", "Basic ====", "", "", false},
		{"no padding", "Basic dTpwcQ", "", "", false},
		{"nothing", "Basic", "", "", false},
		{"too long", "Basic " + b64("u:"+strings.Repeat("p", 512)), "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := mustRequest(t, "CONNECT a:1 HTTP/1.1\r\nproxy-authorization: "+tc.field+"\r\n\r\n")
			user, password, ok := h.Credentials()
			if ok != tc.ok || ok && (string(user) != tc.user || string(password) != tc.password) {
				t.Errorf("%q %q %v, want %q %q %v", user, password, ok, tc.user, tc.password, tc.ok)
			}
		})
	}
	if _, _, ok := mustRequest(t, "CONNECT a:1 HTTP/1.1\r\n\r\n").Credentials(); ok {
		t.Error("credentials out of nothing")
	}
}

func TestTheCredentialsLineIsNotMetered(t *testing.T) {
	t.Parallel()
	const before, after = "GET http://a/ HTTP/1.1\r\nHost: a\r\n", "X: y\r\n\r\n"
	for _, line := range []string{"", "Proxy-Authorization: Basic dTpw\r\n", "PROXY-AUTHORIZATION:   Basic dTpw  \r\n"} {
		h := mustRequest(t, before+line+after)
		if got, want := h.Metered(), len(before+after); got != want {
			t.Errorf("with %q %d bytes are metered, want %d", line, got, want)
		}
	}
}

func TestTheRequestDeterminesTheFraming(t *testing.T) {
	t.Parallel()
	const ws = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
	for _, tc := range []struct {
		name, line, fields string
		want               http1.Exchange
	}{
		{"1.1 is kept", "GET http://a/ HTTP/1.1", "", http1.Exchange{}},
		{"1.1 closes on request", "GET http://a/ HTTP/1.1", "Connection: x, CLOSE\r\n", http1.Exchange{Close: true}},
		{"Proxy-Connection counts", "GET http://a/ HTTP/1.1", "Proxy-Connection: close\r\n", http1.Exchange{Close: true}},
		{"1.0 is never kept", "GET http://a/ HTTP/1.0", "Connection: keep-alive\r\n", http1.Exchange{HTTP10: true, Close: true}},
		{"HEAD", "HEAD http://a/ HTTP/1.1", "", http1.Exchange{Head: true}},
		{"CONNECT", "CONNECT a:1 HTTP/1.1", "", http1.Exchange{Connect: true}},
		{"WebSocket", "GET http://a/ HTTP/1.1", ws, http1.Exchange{Upgrade: true}},
		{"WebSocket with a body", "GET http://a/ HTTP/1.1", ws + "Content-Length: 1\r\n", http1.Exchange{}},
		{"WebSocket by POST", "POST http://a/ HTTP/1.1", ws, http1.Exchange{}},
		{"WebSocket in 1.0", "GET http://a/ HTTP/1.0", ws, http1.Exchange{HTTP10: true, Close: true}},
		{"another protocol", "GET http://a/ HTTP/1.1", "Upgrade: h2c\r\nConnection: Upgrade\r\n", http1.Exchange{}},
		{"two protocols", "GET http://a/ HTTP/1.1", ws + "Upgrade: websocket\r\n", http1.Exchange{}},
		{"Upgrade that Connection does not name", "GET http://a/ HTTP/1.1", "Upgrade: websocket\r\n", http1.Exchange{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := mustRequest(t, tc.line+"\r\nHost: a\r\n"+tc.fields+"\r\n").Exchange(); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestOnlyAClientOfHTTP11WithABodyWaits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		minor  int
		fields string
		want   bool
	}{
		{1, "Content-Length: 5\r\nExpect: 100-Continue\r\n", true},
		{1, "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", true},
		{1, "Content-Length: 5\r\n", false},
		{1, "Content-Length: 0\r\nExpect: 100-continue\r\n", false},
		{1, "Expect: 100-continue\r\n", false},
		{0, "Content-Length: 5\r\nExpect: 100-continue\r\n", false},
	} {
		h := mustRequest(t, fmt.Sprintf("POST http://a/ HTTP/1.%d\r\nHost: a\r\n%s\r\n", tc.minor, tc.fields))
		if got := h.ExpectContinue(); got != tc.want {
			t.Errorf("HTTP/1.%d %q: %v, want %v", tc.minor, tc.fields, got, tc.want)
		}
		if got := strings.Contains(string(h.Append(nil)), "Expect"); got != tc.want {
			t.Errorf("HTTP/1.%d %q: passed on %v, want %v", tc.minor, tc.fields, got, tc.want)
		}
	}
}
