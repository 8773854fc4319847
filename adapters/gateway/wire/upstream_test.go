package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/wire"
)

func TestConnectIsAsked(t *testing.T) {
	for _, tc := range []struct {
		target         wire.Target
		user, password string
		want           string
	}{
		{wire.Target{Host: "example.com", Port: 443}, "", "", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"},
		{wire.Target{Host: "2001:db8::1", Port: 80}, "Aladdin", "open sesame",
			"CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"},
		{wire.Target{Host: "192.0.2.1", Port: 1}, "u\r\nX: y", "", "CONNECT 192.0.2.1:1 HTTP/1.1\r\nHost: 192.0.2.1:1\r\nProxy-Authorization: Basic dQ0KWDogeTo=\r\n\r\n"},
	} {
		if got := string(wire.AppendConnect(nil, tc.target, tc.user, tc.password)); got != tc.want {
			t.Errorf("asked %q, want %q", got, tc.want)
		}
	}
}

func TestAnswersToConnect(t *testing.T) {
	for _, tc := range []struct {
		name, in, want, rest string
	}{
		{"open", "HTTP/1.1 200 OK\r\n\r\nSSH-2.0", "200 OK []", "SSH-2.0"},
		{"open, with a length that means nothing", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nSSH-2.0", "200 OK []", "SSH-2.0"},
		{"open, without a text", "HTTP/1.0 200\r\n\r\n", "200 OK []", ""},
		{"behind interim answers", "HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 y\r\n\r\nz", "200 y []", "z"},
		{"with reasons", "HTTP/1.1 403 No\r\nProxy-Status: a\r\nX-Brd-Err-Code: b\r\nRetry-After: 5\r\nproxy-status: c\r\nx-brd-err-msg:\r\n\r\nbody", "403 No [a c b]", "body"},
		{"as long as allowed", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", wire.MaxAnswer-24) + "\r\n\r\n", "200 OK []", ""},
	} {
		for _, slow := range []bool{false, true} {
			var src io.Reader = strings.NewReader(tc.in)
			if slow {
				src = iotest.OneByteReader(src)
			}
			r := wire.NewReader(src)
			a, err := wire.ReadAnswer(r)
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			why := append([]string{}, a.Why...)
			if len(why) == 3 { // in the order in which they came
				why = []string{why[0], why[2], why[1]}
			}
			rest, _ := io.ReadAll(r)
			got := strings.TrimSpace(a.Text)
			if got = string(rune('0'+a.Status/100)) + string(rune('0'+a.Status/10%10)) + string(rune('0'+a.Status%10)) + " " + got + " [" + strings.Join(why, " ") + "]"; got != tc.want || string(rest) != tc.rest {
				t.Errorf("%s: read %s and left %q", tc.name, got, rest)
			}
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, in := range []string{"x\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/3.0 200 OK\r\n\r\n", "HTTP/1.1 101 Up\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", wire.MaxAnswer-23) + "\r\n\r\n",
		strings.Repeat("x", wire.MaxAnswer), "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 129) + "\r\n",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 17)} {
		a, err := wire.ReadAnswer(wire.NewReader(strings.NewReader(in)))
		if bad := (*wire.Error)(nil); !errors.As(err, &bad) || bad.Status != 502 {
			t.Errorf("%.40q: %+v, %v", in, a, err)
		}
	}
	for in, want := range map[string]error{"": io.EOF, "HTTP/1.1 200 OK\r\n": io.ErrUnexpectedEOF, "HTTP/1.1 100 x\r\n\r\n": io.EOF} {
		if _, err := wire.ReadAnswer(wire.NewReader(strings.NewReader(in))); err != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

func TestTheBeginningOfABodyIsRead(t *testing.T) {
	for _, tc := range []struct {
		in, want string
		cut      bool
	}{
		{"Content-Length: 5\r\n\r\nhello, and more", "hello", false},
		{"Content-Length: 50\r\n\r\nhello", "hello", true},
		{"Content-Length: 50\r\n\r\n" + strings.Repeat("x", 50), strings.Repeat("x", 10), true},
		{"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n", "hello", false},
		{"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\nbroken", "he", true},
		{"\r\nuntil", "until", false},
		{"Content-Length: 0\r\n\r\nhello", "", false},
	} {
		r := wire.NewReader(iotest.OneByteReader(strings.NewReader("HTTP/1.1 502 x\r\n" + tc.in)))
		a, err := wire.ReadAnswer(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, cut := a.Beginning(r, 10); string(got) != tc.want || cut != tc.cut {
			t.Errorf("%q: read %q, cut %v", tc.in, got, cut)
		}
	}
}

// script is the other end of a SOCKS5 handshake: what it says, and what it heard.
type script struct {
	io.Reader
	heard bytes.Buffer
}

func (s *script) Write(p []byte) (int, error) { return s.heard.Write(p) }

func TestSocksIsAsked(t *testing.T) {
	name := wire.Target{Host: "example.com", Port: 443}
	const open4 = "\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50"
	for _, tc := range []struct {
		name           string
		target         wire.Target
		user, password string
		says, want     string
	}{
		{"a name", name, "", "", "\x05\x00" + open4, "\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
		{"an IPv4 address", wire.Target{Host: "192.0.2.1", Port: 80}, "", "", "\x05\x00" + open4, "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"},
		{"an IPv6 address", wire.Target{Host: "2001:db8::1", Port: 80}, "", "", "\x05\x00\x05\x00\x00\x04" + strings.Repeat("\x01", 18),
			"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50"},
		{"a credential, bound to a name", name, "user", "pass", "\x05\x02\x01\x00\x05\x00\x00\x03\x01a\x00\x00",
			"\x05\x01\x02\x01\x04user\x04pass\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
		{"no password", name, "user", "", "\x05\x02\x01\x00" + open4, "\x05\x01\x02\x01\x04user\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
	} {
		s := &script{Reader: iotest.OneByteReader(strings.NewReader(tc.says + "banner"))}
		if err := wire.SocksConnect(s, tc.target, tc.user, tc.password); err != nil || s.heard.String() != tc.want {
			t.Errorf("%s: said %q, %v; want %q", tc.name, s.heard.String(), err, tc.want)
		}
		if rest, _ := io.ReadAll(s); string(rest) != "banner" {
			t.Errorf("%s: left %q", tc.name, rest)
		}
	}
}

func TestSocksUpstreamsThatRefuse(t *testing.T) {
	for says, want := range map[string]error{
		"\x05\xff":                          wire.ErrSocksRejected,
		"\x05\x00":                          wire.ErrSocksAnswer, // a method that was not offered
		"\x04\x02":                          wire.ErrSocksAnswer,
		"\x05\x02\x01\x01":                  wire.ErrSocksRejected,
		"\x05\x02\x05\x00":                  wire.ErrSocksAnswer,
		"\x05\x02\x01\x00\x05\x02\x00\x01":  wire.SocksRefusal(wire.SocksForbidden),
		"\x05\x02\x01\x00\x04\x00\x00\x01":  wire.ErrSocksAnswer,
		"\x05\x02\x01\x00\x05\x00\x00\x05":  wire.ErrSocksAnswer,
		"\x05\x02\x01\x00\x05\x00\x00\x03":  io.ErrUnexpectedEOF,
		"\x05\x02\x01\x00\x05\x00\x00\x01x": io.ErrUnexpectedEOF,
		"\x05\x02\x01":                      io.ErrUnexpectedEOF,
		"":                                  io.ErrUnexpectedEOF,
	} {
		s := &script{Reader: strings.NewReader(says)}
		if err := wire.SocksConnect(s, wire.Target{Host: "a", Port: 1}, "u", "p"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", says, err, want)
		}
	}
	s := &script{Reader: strings.NewReader("")}
	if err := wire.SocksConnect(s, wire.Target{Host: "a", Port: 1}, strings.Repeat("u", 256), "p"); err != wire.ErrSocksCredential || s.heard.Len() > 0 {
		t.Errorf("a long user name: %v after %q", err, s.heard.String())
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\n\r\nearly", "HTTP/1.0 407\r\nProxy-Status: a\r\n\r\n", "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 y\n\n",
		"HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nE_A\r\n0\r\n\r\n", "HTTP/1.1 429 x\r\nRetry-After: 9\r\nContent-Length: 1\r\n\r\nxy"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wire.NewReader(iotest.HalfReader(bytes.NewReader(in)))
		a, err := wire.ReadAnswer(r)
		if err != nil {
			return
		}
		if a.Status < 200 || a.Status > 999 || strings.ContainsAny(a.Text+strings.Join(a.Why, "")+a.RetryAfter, "\r\n\x00") {
			t.Fatalf("%q is read as %+v", in, a)
		}
		if body, _ := a.Beginning(r, 64); len(body) > 64 || a.Open() && body != nil {
			t.Fatalf("%q has the body %q", in, body)
		}
		if rest, _ := io.ReadAll(r); a.Open() && !bytes.HasSuffix(in, rest) {
			t.Fatalf("%q leaves %q", in, rest)
		} else if head := in[:len(in)-len(rest)]; a.Open() && !bytes.HasSuffix(head, []byte("\n")) {
			t.Fatalf("%q of the tunnel was taken for the answer", head)
		}
	})
}

func FuzzSocksReplies(f *testing.F) {
	for _, s := range []string{"\x05\x02\x01\x00\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50early", "\x05\xff", "\x05\x02\x01\x01",
		"\x05\x02\x01\x00\x05\x00\x00\x03\x01a\x00\x00x", "\x05\x02\x01\x00\x05\x05\x00\x01", "\x05\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		src := bytes.NewReader(in)
		s := &script{Reader: src}
		err := wire.SocksConnect(s, wire.Target{Host: "example.com", Port: 443}, "user", "pass")
		taken := len(in) - src.Len()
		if taken > 2+2+4+1+255+2 {
			t.Fatalf("%d bytes were taken", taken)
		}
		var no wire.SocksRefusal
		if errors.As(err, &no) && no == wire.SocksGranted {
			t.Fatalf("%q is granted and refused", in)
		}
		if err == nil && !bytes.HasPrefix(in, []byte("\x05\x02\x01\x00\x05\x00")) {
			t.Fatalf("%q opens a tunnel", in)
		}
		if bytes.Contains(s.heard.Bytes(), []byte("pass")) && !bytes.HasPrefix(in, []byte("\x05\x02")) {
			t.Fatalf("%q is told the password", in)
		}
	})
}
