package socks5_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/socks5"
)

// script is the other end of a handshake: it reads scripted answers and records
// what is written to it.
type script struct {
	io.Reader
	written bytes.Buffer
}

func (s *script) Write(p []byte) (int, error) { return s.written.Write(p) }

func TestConnectSendsTheHandshake(t *testing.T) {
	t.Parallel()
	name := hostport.Target{Host: "example.com", Port: 443}
	const open4 = "\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50"
	for _, tc := range []struct {
		name           string
		target         hostport.Target
		user, password string
		answers, want  string
	}{
		{"a name", name, "", "", "\x05\x00" + open4, "\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
		{"an IPv4 address", hostport.Target{Host: "192.0.2.1", Port: 80}, "", "", "\x05\x00" + open4, "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"},
		{"an IPv6 address", hostport.Target{Host: "2001:db8::1", Port: 80}, "", "", "\x05\x00\x05\x00\x00\x04" + strings.Repeat("\x01", 18),
			"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50"},
		{"a credential, bound to a name", name, "user", "pass", "\x05\x02\x01\x00\x05\x00\x00\x03\x01a\x00\x00",
			"\x05\x01\x02\x01\x04user\x04pass\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
		{"no password", name, "user", "", "\x05\x02\x01\x00" + open4, "\x05\x01\x02\x01\x04user\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb"},
	} {
		s := &script{Reader: iotest.OneByteReader(strings.NewReader(tc.answers + "banner"))}
		if err := socks5.Connect(s, tc.target, tc.user, tc.password); err != nil || s.written.String() != tc.want {
			t.Errorf("%s: wrote %q, %v; want %q", tc.name, s.written.String(), err, tc.want)
		}
		if rest, _ := io.ReadAll(s); string(rest) != "banner" {
			t.Errorf("%s: left %q", tc.name, rest)
		}
	}
}

func TestConnectReportsRefusals(t *testing.T) {
	t.Parallel()
	for answers, want := range map[string]error{
		"\x05\xff":                          socks5.ErrRejected,
		"\x05\x00":                          socks5.ErrMalformed, // a method that was not offered
		"\x04\x02":                          socks5.ErrMalformed,
		"\x05\x02\x01\x01":                  socks5.ErrRejected,
		"\x05\x02\x05\x00":                  socks5.ErrMalformed,
		"\x05\x02\x01\x00\x05\x02\x00\x01":  socks5.NotAllowed,
		"\x05\x02\x01\x00\x04\x00\x00\x01":  socks5.ErrMalformed,
		"\x05\x02\x01\x00\x05\x00\x00\x05":  socks5.ErrMalformed,
		"\x05\x02\x01\x00\x05\x00\x00\x03":  io.ErrUnexpectedEOF,
		"\x05\x02\x01\x00\x05\x00\x00\x01x": io.ErrUnexpectedEOF,
		"\x05\x02\x01":                      io.ErrUnexpectedEOF,
		"":                                  io.ErrUnexpectedEOF,
	} {
		s := &script{Reader: strings.NewReader(answers)}
		if err := socks5.Connect(s, hostport.Target{Host: "a", Port: 1}, "u", "p"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answers, err, want)
		}
	}
	s := &script{Reader: strings.NewReader("")}
	if err := socks5.Connect(s, hostport.Target{Host: "a", Port: 1}, strings.Repeat("u", 256), "p"); err != socks5.ErrCredential || s.written.Len() > 0 {
		t.Errorf("a long user name: %v after %q", err, s.written.String())
	}
}

func FuzzReplies(f *testing.F) {
	for _, s := range []string{"\x05\x02\x01\x00\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50early", "\x05\xff", "\x05\x02\x01\x01",
		"\x05\x02\x01\x00\x05\x00\x00\x03\x01a\x00\x00x", "\x05\x02\x01\x00\x05\x05\x00\x01", "\x05\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		src := bytes.NewReader(in)
		s := &script{Reader: src}
		err := socks5.Connect(s, hostport.Target{Host: "example.com", Port: 443}, "user", "pass")
		taken := len(in) - src.Len()
		if taken > 2+2+4+1+255+2 {
			t.Fatalf("%d bytes were taken", taken)
		}
		var refused socks5.Reply
		if errors.As(err, &refused) && refused == socks5.Succeeded {
			t.Fatalf("%q both succeeds and fails", in)
		}
		if err == nil && !bytes.HasPrefix(in, []byte("\x05\x02\x01\x00\x05\x00")) {
			t.Fatalf("%q opens a tunnel", in)
		}
		if bytes.Contains(s.written.Bytes(), []byte("pass")) && !bytes.HasPrefix(in, []byte("\x05\x02")) {
			t.Fatalf("%q receives the password", in)
		}
	})
}
