package account_test

import (
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/account"
)

func TestNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.77":             "203.0.113.0/24",
		"::ffff:203.0.113.77":      "203.0.113.0/24",
		"2001:db8:12:3456::1":      "2001:db8:12::/48",
		"fe80::1:2:3%eth0":         "fe80::/48",
		"2001:db8:12:ffff:1:2:3:4": "2001:db8:12::/48",
	} {
		if got := account.Network(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is of %s, want %s", text, got, want)
		}
	}
	if got := account.Network(netip.Addr{}); got != "" {
		t.Errorf("no address is of %s", got)
	}
}

func TestWhatIsKeptOfAnOrigin(t *testing.T) {
	for agent, want := range map[string]string{
		"curl/8.5.0":                   "curl/8.5.0",
		"a\x1b[31mb\r\nc\x00":          "a[31mbc",
		"half \xc3":                    "half ",
		strings.Repeat("ü", 200):       strings.Repeat("ü", 128),
		"x" + strings.Repeat("ü", 200): "x" + strings.Repeat("ü", 127),
	} {
		got := account.Origin{Addr: netip.MustParseAddr("::ffff:192.0.2.1"), UserAgent: agent}.Cleaned()
		if got.UserAgent != want || got.Addr.String() != "192.0.2.1" {
			t.Errorf("%q becomes %+v", agent, got)
		}
	}
}
