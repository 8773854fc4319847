package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/wire"
)

func TestSocksGreeting(t *testing.T) {
	for _, tc := range []struct {
		name, in, answer string
		want             error
	}{
		{"password on offer", "\x05\x01\x02", "\x05\x02", nil},
		{"among others", "\x05\x03\x00\x01\x02", "\x05\x02", nil},
		{"no authentication only", "\x05\x01\x00", "\x05\xff", wire.ErrSocksMethod},
		{"nothing on offer", "\x05\x00", "\x05\xff", wire.ErrSocksMethod},
		{"255 methods", "\x05\xff" + strings.Repeat("\x02", 255), "\x05\x02", nil},
		{"SOCKS4", "\x04\x01\x02", "", wire.ErrSocksVersion},
		{"cut short", "\x05\x02\x02", "", io.ErrUnexpectedEOF},
		{"nothing", "", "", io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s wire.Socks
			var out bytes.Buffer
			err := s.Greet(strings.NewReader(tc.in), &out)
			if !errors.Is(err, tc.want) || out.String() != tc.answer {
				t.Errorf("answered %q, %v; want %q, %v", out.String(), err, tc.answer, tc.want)
			}
		})
	}
}

func TestSocksCredentials(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, tc := range []struct {
		name, in, user, password string
		want                     error
	}{
		{"both", "\x01\x04user\x06secret", "user", "secret", nil},
		{"255 bytes each", "\x01\xff" + long + "\xff" + long, long, long, nil},
		{"another version", "\x05\x04user\x06secret", "", "", wire.ErrSocksAuth},
		{"no user", "\x01\x00\x06secret", "", "", wire.ErrSocksAuth},
		{"no password", "\x01\x04user\x00", "", "", wire.ErrSocksAuth},
		{"cut short", "\x01\x04user\x06secre", "", "", io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s wire.Socks
			user, password, err := s.Auth(strings.NewReader(tc.in))
			if !errors.Is(err, tc.want) || string(user) != tc.user || string(password) != tc.password {
				t.Errorf("%q %q %v, want %q %q %v", user, password, err, tc.user, tc.password, tc.want)
			}
		})
	}
}

func TestSocksStatus(t *testing.T) {
	var s wire.Socks
	var out bytes.Buffer
	if err := errors.Join(s.Status(&out, true), s.Status(&out, false)); err != nil || out.String() != "\x01\x00\x01\x01" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSocksRequest(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, tc := range []struct {
		name, in string
		want     wire.Target
		code     byte
	}{
		{"IPv4", "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb", wire.Target{Host: "192.0.2.1", Port: 443}, 0},
		{"IPv6", "\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x50",
			wire.Target{Host: "2001:db8::1", Port: 80}, 0},
		{"a name", "\x05\x01\x00\x03\x01a\x00\x50", wire.Target{Host: "a", Port: 80}, 0},
		{"a name of 255", "\x05\x01\x00\x03\xff" + long + "\x00\x50", wire.Target{Host: long, Port: 80}, 0},
		{"an address spelled as a name", "\x05\x01\x00\x03\x03::1\x00\x50", wire.Target{Host: "::1", Port: 80}, 0},
		{"BIND", "\x05\x02\x00\x01\xc0\x00\x02\x01\x01\xbb", wire.Target{}, wire.SocksCommandUnknown},
		{"UDP ASSOCIATE", "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", wire.Target{}, wire.SocksCommandUnknown},
		{"an unknown address type", "\x05\x01\x00\x09\xc0\x00\x02\x01\x01\xbb", wire.Target{}, wire.SocksAddressTypeUnknown},
		{"an empty name", "\x05\x01\x00\x03\x00\x00\x50", wire.Target{}, wire.SocksFailure},
		{"a name with a space", "\x05\x01\x00\x03\x03a b\x00\x50", wire.Target{}, wire.SocksFailure},
		{"a name with a port", "\x05\x01\x00\x03\x03a:1\x00\x50", wire.Target{}, wire.SocksFailure},
		{"a zone", "\x05\x01\x00\x03\x09fe80::1%1\x00\x50", wire.Target{}, wire.SocksFailure},
		{"port 0", "\x05\x01\x00\x03\x01a\x00\x00", wire.Target{}, wire.SocksFailure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s wire.Socks
			r := strings.NewReader(tc.in + "TLS")
			got, err := s.Request(r)
			var e *wire.SocksError
			if errors.As(err, &e) {
				if e.Code != tc.code {
					t.Errorf("reply %#x (%v), want %#x", e.Code, e, tc.code)
				}
				return
			}
			if err != nil || tc.code != 0 || got != tc.want {
				t.Fatalf("%v %v, want %v and reply %#x", got, err, tc.want, tc.code)
			}
			if r.Len() != 3 {
				t.Errorf("%d bytes of the tunnel were left, want 3", r.Len())
			}
		})
	}
	t.Run("cut short", func(t *testing.T) {
		var s wire.Socks
		if _, err := s.Request(strings.NewReader("\x05\x01\x00\x03\x05a")); err != io.ErrUnexpectedEOF {
			t.Error(err)
		}
	})
}

func TestSocksReply(t *testing.T) {
	for bound, want := range map[netip.AddrPort]string{
		{}:                                       "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00",
		netip.MustParseAddrPort("192.0.2.1:258"): "\x05\x00\x00\x01\xc0\x00\x02\x01\x01\x02",
		netip.MustParseAddrPort("[::ffff:192.0.2.1]:1"): "\x05\x00\x00\x01\xc0\x00\x02\x01\x00\x01",
		netip.MustParseAddrPort("[2001:db8::1]:1"):      "\x05\x00\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x01",
	} {
		var s wire.Socks
		var out bytes.Buffer
		if err := s.Reply(&out, wire.SocksGranted, bound); err != nil || out.String() != want {
			t.Errorf("%v: %q, want %q (%v)", bound, out.String(), want, err)
		}
	}
}
