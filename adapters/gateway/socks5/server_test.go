package socks5_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/socks5"
)

func TestGreeting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, answer string
		want             error
	}{
		{"password on offer", "\x05\x01\x02", "\x05\x02", nil},
		{"among others", "\x05\x03\x00\x01\x02", "\x05\x02", nil},
		{"no authentication only", "\x05\x01\x00", "\x05\xff", socks5.ErrNoMethod},
		{"no authentication too", "\x05\x02\x00\x02", "\x05\x02", nil},
		{"nothing on offer", "\x05\x00", "\x05\xff", socks5.ErrNoMethod},
		{"255 methods", "\x05\xff" + strings.Repeat("\x02", 255), "\x05\x02", nil},
		{"SOCKS4", "\x04\x01\x02", "", socks5.ErrVersion},
		{"cut short", "\x05\x02\x02", "", io.ErrUnexpectedEOF},
		{"nothing", "", "", io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s socks5.Server
			var out bytes.Buffer
			err := s.Greet(strings.NewReader(tc.in), &out, socks5.Password)
			if !errors.Is(err, tc.want) || out.String() != tc.answer {
				t.Errorf("answered %q, %v; want %q, %v", out.String(), err, tc.answer, tc.want)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for _, tc := range []struct {
		name, in, user, password string
		want                     error
	}{
		{"both", "\x01\x04user\x06secret", "user", "secret", nil},
		{"255 bytes each", "\x01\xff" + long + "\xff" + long, long, long, nil},
		{"another version", "\x05\x04user\x06secret", "", "", socks5.ErrAuth},
		{"no user", "\x01\x00\x06secret", "", "", socks5.ErrAuth},
		{"no password", "\x01\x04user\x00", "", "", socks5.ErrAuth},
		{"cut short", "\x01\x04user\x06secre", "", "", io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s socks5.Server
			user, password, err := s.Auth(strings.NewReader(tc.in))
			if !errors.Is(err, tc.want) || string(user) != tc.user || string(password) != tc.password {
				t.Errorf("%q %q %v, want %q %q %v", user, password, err, tc.user, tc.password, tc.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	var s socks5.Server
	var out bytes.Buffer
	if err := errors.Join(s.Status(&out, true), s.Status(&out, false)); err != nil || out.String() != "\x01\x00\x01\x01" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	for _, tc := range []struct {
		name, in string
		want     hostport.Target
		reply    socks5.Reply
	}{
		{"IPv4", "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb", hostport.Target{Host: "192.0.2.1", Port: 443}, 0},
		{"IPv6", "\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x50",
			hostport.Target{Host: "2001:db8::1", Port: 80}, 0},
		{"a name", "\x05\x01\x00\x03\x01a\x00\x50", hostport.Target{Host: "a", Port: 80}, 0},
		{"a name of 255", "\x05\x01\x00\x03\xff" + long + "\x00\x50", hostport.Target{Host: long, Port: 80}, 0},
		{"an address spelled as a name", "\x05\x01\x00\x03\x03::1\x00\x50", hostport.Target{Host: "::1", Port: 80}, 0},
		{"BIND", "\x05\x02\x00\x01\xc0\x00\x02\x01\x01\xbb", hostport.Target{}, socks5.CommandNotSupported},
		{"UDP ASSOCIATE", "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", hostport.Target{}, socks5.CommandNotSupported},
		{"an unknown address type", "\x05\x01\x00\x09\xc0\x00\x02\x01\x01\xbb", hostport.Target{}, socks5.AddressTypeNotSupported},
		{"an empty name", "\x05\x01\x00\x03\x00\x00\x50", hostport.Target{}, socks5.GeneralFailure},
		{"a name with a space", "\x05\x01\x00\x03\x03a b\x00\x50", hostport.Target{}, socks5.GeneralFailure},
		{"a name with a port", "\x05\x01\x00\x03\x03a:1\x00\x50", hostport.Target{}, socks5.GeneralFailure},
		{"a zone", "\x05\x01\x00\x03\x09fe80::1%1\x00\x50", hostport.Target{}, socks5.GeneralFailure},
		{"port 0", "\x05\x01\x00\x03\x01a\x00\x00", hostport.Target{}, socks5.GeneralFailure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s socks5.Server
			r := strings.NewReader(tc.in + "TLS")
			got, err := s.Request(r)
			var e *socks5.RequestError
			if errors.As(err, &e) {
				if e.Reply != tc.reply {
					t.Errorf("reply %#x (%v), want %#x", e.Reply, e, tc.reply)
				}
				return
			}
			if err != nil || tc.reply != 0 || got != tc.want {
				t.Fatalf("%v %v, want %v and reply %#x", got, err, tc.want, tc.reply)
			}
			if r.Len() != 3 {
				t.Errorf("%d bytes of the tunnel were left, want 3", r.Len())
			}
		})
	}
	t.Run("cut short", func(t *testing.T) {
		var s socks5.Server
		if _, err := s.Request(strings.NewReader("\x05\x01\x00\x03\x05a")); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	})
}

func TestReply(t *testing.T) {
	t.Parallel()
	for bound, want := range map[netip.AddrPort]string{
		{}:                                       "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00",
		netip.MustParseAddrPort("192.0.2.1:258"): "\x05\x00\x00\x01\xc0\x00\x02\x01\x01\x02",
		netip.MustParseAddrPort("[::ffff:192.0.2.1]:1"): "\x05\x00\x00\x01\xc0\x00\x02\x01\x00\x01",
		netip.MustParseAddrPort("[2001:db8::1]:1"):      "\x05\x00\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x01",
	} {
		var s socks5.Server
		var out bytes.Buffer
		if err := s.Reply(&out, socks5.Succeeded, bound); err != nil || out.String() != want {
			t.Errorf("%v: %q, want %q (%v)", bound, out.String(), want, err)
		}
	}
}

func FuzzServer(f *testing.F) {
	f.Add([]byte("\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50tunnel"))
	f.Add([]byte("\x05\x02\x00\x02\x01\x01u\x01p\x05\x01\x00\x03\x01a\x01\xbb"))
	f.Add([]byte("\x05\x01\x02\x01\x01u\x01p\x05\x03\x00\x04" + strings.Repeat("\x00", 18)))
	f.Add([]byte("\x05\x01\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s socks5.Server
		var out bytes.Buffer
		r := bytes.NewReader(in)
		if s.Greet(r, &out, socks5.Password) != nil {
			if out.Len() > 2 {
				t.Fatalf("answered %q", out.Bytes())
			}
			return
		}
		user, password, err := s.Auth(r)
		if err != nil {
			return
		}
		if len(user) == 0 || len(password) == 0 {
			t.Fatal("empty credentials")
		}
		if target, err := s.Request(r); err == nil && (target.Host == "" || target.Port == 0 || len(target.Host) > 255) {
			t.Fatalf("target %+v", target)
		}
	})
}
