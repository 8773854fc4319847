package conns_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/adapters/conns"
)

const signature = "\r\n\r\n\x00\r\nQUIT\n"

// header2 is a header of version 2: its command, its family, and what follows.
func header2(command, family byte, body string) string {
	return signature + string([]byte{command, family}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)))) + body
}

const (
	four = "\xc0\x00\x02\x01\xc6\x33\x64\x07\x0f\xa0\x1f\x91" // 192.0.2.1:4000 to 198.51.100.7:8081
	six  = " \x01\r\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01 \x01\r\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x0f\xa0\x1f\x91"
)

var headers = map[string]struct {
	text, want string // want is the client; empty: the peer; "none": it is refused
}{
	"v1, IPv4":                    {"PROXY TCP4 192.0.2.1 198.51.100.7 4000 8081\r\n", "192.0.2.1:4000"},
	"v1, IPv6":                    {"PROXY TCP6 2001:db8::1 2001:db8::2 4000 8081\r\n", "[2001:db8::1]:4000"},
	"v1, mapped":                  {"PROXY TCP6 ::ffff:192.0.2.1 ::1 4000 8081\r\n", "192.0.2.1:4000"},
	"v1, unknown":                 {"PROXY UNKNOWN\r\n", ""},
	"v1, unknown with more":       {"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", ""},
	"v1, another family":          {"PROXY UDP4 192.0.2.1 198.51.100.7 4000 8081\r\n", "none"},
	"v1, of the wrong family":     {"PROXY TCP4 2001:db8::1 2001:db8::2 4000 8081\r\n", "none"},
	"v1, a name":                  {"PROXY TCP4 shop.example 198.51.100.7 4000 8081\r\n", "none"},
	"v1, a zone":                  {"PROXY TCP6 fe80::1%eth0 fe80::2 4000 8081\r\n", "none"},
	"v1, a port too large":        {"PROXY TCP4 192.0.2.1 198.51.100.7 65536 8081\r\n", "none"},
	"v1, too few words":           {"PROXY TCP4 192.0.2.1\r\n", "none"},
	"v1, lower case":              {"proxy TCP4 192.0.2.1 198.51.100.7 4000 8081\r\n", "none"},
	"v1, too long":                {"PROXY TCP4 " + strings.Repeat("1", 120), "none"},
	"v2, IPv4":                    {header2(0x21, 0x11, four), "192.0.2.1:4000"},
	"v2, IPv6":                    {header2(0x21, 0x21, six), "[2001:db8::1]:4000"},
	"v2, with extensions":         {header2(0x21, 0x11, four+"\x04\x00\x03abc"), "192.0.2.1:4000"},
	"v2, a health check":          {header2(0x20, 0x00, ""), ""},
	"v2, a health check of four":  {header2(0x20, 0x11, four), ""},
	"v2, an unknown family":       {header2(0x21, 0x00, "what it likes"), ""},
	"v2, UDP":                     {header2(0x21, 0x12, four), "none"},
	"v2, a Unix socket":           {header2(0x21, 0x31, strings.Repeat("x", 216)), "none"},
	"v2, another version":         {header2(0x11, 0x11, four), "none"},
	"v2, another command":         {header2(0x22, 0x11, four), "none"},
	"v2, too short for addresses": {header2(0x21, 0x11, four[:11]), "none"},
	"v2, too long":                {header2(0x21, 0x11, four+strings.Repeat("x", conns.MaxProxyHeader)), "none"},
	"a request":                   {"POST / HTTP/1.1\r\n\r\n", "none"},
	"PROPFIND":                    {"PROPFIND / HTTP/1.1\r\n\r\n", "none"},
	"SOCKS5":                      {"\x05\x01\x02", "none"},
}

// Each header is read alike in one piece, byte by byte, and before other bytes; nothing more than it needs is asked for.
func TestHeadersOfTheProxyProtocol(t *testing.T) {
	t.Parallel()
	for name, tc := range headers {
		whole := tc.text + "CONNECT shop.example:443 HTTP/1.1\r\n\r\n" + strings.Repeat("z", 64)
		client, need, err := conns.ParseProxyHeader([]byte(whole))
		if tc.want == "none" {
			if !errors.Is(err, conns.ErrProxyHeader) {
				t.Errorf("%s: %v of %d bytes, %v", name, client, need, err)
			}
			continue
		}
		want := netip.AddrPort{}
		if tc.want != "" {
			want = netip.MustParseAddrPort(tc.want)
		}
		if err != nil || client != want || need != len(tc.text) {
			t.Errorf("%s: %v of %d bytes, %v; want %v of %d", name, client, need, err, want, len(tc.text))
		}
		for n := range len(tc.text) {
			if _, need, err := conns.ParseProxyHeader([]byte(tc.text[:n])); err != nil || need <= n || need > len(tc.text) {
				t.Errorf("%s: of its first %d bytes: needs %d, %v", name, n, need, err)
			}
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	for _, tc := range headers {
		f.Add([]byte(tc.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		client, need, err := conns.ParseProxyHeader(b)
		if need > conns.MaxProxyHeader || err != nil && (need != 0 || client.IsValid()) || need > len(b) && client.IsValid() {
			t.Errorf("%q: %v, %d, %v", b, client, need, err)
		}
	})
}

func BenchmarkProxyHeader(b *testing.B) {
	h := []byte(headers["v2, IPv4"].text)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := conns.ParseProxyHeader(h); err != nil {
			b.Fatal(err)
		}
	}
}
