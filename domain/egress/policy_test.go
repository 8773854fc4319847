package egress_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/egress"

	"pgregory.net/rapid"
)

// special4 has the first, the last or a known address of each special IPv4 range.
var special4 = []string{
	"0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.1.2.3", "10.255.255.255",
	"100.64.0.0", "100.100.100.200", "100.127.255.255", "127.0.0.0", "127.0.0.1", "127.255.255.255",
	"168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255",
	"192.0.0.0", "192.0.0.8", "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.0", "192.168.255.255",
	"198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.255", "224.0.0.1", "239.255.255.250",
	"240.0.0.1", "255.255.255.254", "255.255.255.255",
}

// special6 has addresses of each special IPv6 range.
var special6 = []string{
	"::", "::1", "::2", "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8",
	"64:ff9b:1::", "64:ff9b:1::808:808", "64:ff9b:1:ffff:ffff:ffff:808:808",
	"100::", "100::ffff:ffff:ffff:ffff",
	"2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1",
	"2001:db8::", "2001:db8:ffff::1", "2002::", "2002:808:808::1", "2002:7f00:1::", "2002:ffff:ffff::",
	"3fff::", "3fff:fff:ffff::1", "5f00::", "5f00:ffff::1",
	"fc00::", "fd00:ec2::254", "fdff:ffff::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1", "ffff::1",
}

// public has the addresses next to the special ranges, and known ones.
var public = []string{
	"1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	"126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
	"172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
	"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
	"203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1",
	"2606:4700:4700::1111", "2a00:1450::1", "3ffe::1", "3fff:1000::1",
}

// spellings writes an IPv4 address in the forms that end at it.
func spellings(v4 string) []string {
	b := netip.MustParseAddr(v4).As4()
	high, low := uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])
	return []string{
		v4,
		"::ffff:" + v4,
		fmt.Sprintf("::ffff:%x:%x", high, low),
		fmt.Sprintf("0000:0000:0000:0000:0000:FFFF:%04X:%04X", high, low),
		"64:ff9b::" + v4,
		fmt.Sprintf("64:FF9B:0:0:0:0:%X:%X", high, low),
	}
}

// disguises writes an IPv4 address in the tunnel forms, which nothing opens.
func disguises(v4 string) []string {
	b := netip.MustParseAddr(v4).As4()
	high, low := uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])
	return []string{
		fmt.Sprintf("2002:%x:%x::", high, low),
		fmt.Sprintf("2001:0:%x:%x::", high, low),
		fmt.Sprintf("2001:0:102:304:0:0:%x:%x", ^high, ^low),
		fmt.Sprintf("64:ff9b:1::%x:%x", high, low),
	}
}

func expanded(v6 string) string {
	return strings.ToUpper(netip.MustParseAddr(v6).StringExpanded())
}

func on(addr string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), port)
}

func mustRefuse(t *testing.T, p egress.Policy, target netip.AddrPort) {
	t.Helper()
	err := p.Check(target)
	var refusal *domain.Error
	if !errors.As(err, &refusal) || refusal.Kind != domain.Forbidden || refusal.Code != "TARGET_REFUSED" || !errors.Is(err, egress.ErrRefused) {
		t.Errorf("%v: %v, want TARGET_REFUSED", target, err)
		return
	}
	if target.Addr().IsValid() && !target.Addr().IsUnspecified() && strings.Contains(refusal.Message, target.Addr().WithZone("").String()) {
		t.Errorf("the message names %v: %s", target.Addr(), refusal.Message)
	}
}

func mustAllow(t *testing.T, p egress.Policy, target netip.AddrPort) {
	t.Helper()
	if err := p.Check(target); err != nil {
		t.Errorf("%v: %v, want it allowed", target, err)
	}
}

func TestSpecialAddressesAreRefusedInEverySpelling(t *testing.T) {
	var p egress.Policy
	for _, v4 := range special4 {
		for _, spelling := range append(spellings(v4), disguises(v4)...) {
			mustRefuse(t, p, on(spelling, 443))
		}
		mustRefuse(t, p, on("::"+v4, 443))
		mustRefuse(t, p, on("::ffff:0:"+v4, 443))
		mustRefuse(t, p, on("::ffff:"+v4+"%eth0", 443))
	}
	for _, v6 := range special6 {
		mustRefuse(t, p, on(v6, 443))
		mustRefuse(t, p, on(expanded(v6), 443))
		mustRefuse(t, p, on(v6+"%eth0", 443))
	}
	mustRefuse(t, p, netip.AddrPort{})
}

func TestPublicAddressesAreAllowedInEverySpelling(t *testing.T) {
	var p egress.Policy
	for _, addr := range public {
		mustAllow(t, p, on(addr, 443))
		mustAllow(t, p, on(addr, 8080))
		if netip.MustParseAddr(addr).Is4() {
			for _, spelling := range spellings(addr) {
				mustAllow(t, p, on(spelling, 443))
			}
			for _, disguise := range disguises(addr) {
				mustRefuse(t, p, on(disguise, 443))
			}
			continue
		}
		mustAllow(t, p, on(expanded(addr), 443))
		mustRefuse(t, p, on(addr+"%eth0", 443))
	}
}

func TestMailPortsAreAlwaysRefused(t *testing.T) {
	open := egress.Policy{Loopback: true, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	for _, port := range []uint16{0, 25, 465, 587} {
		for _, addr := range []string{"8.8.8.8", "127.0.0.1", "10.0.0.1", "2606:4700::1111", "::1"} {
			mustRefuse(t, open, on(addr, port))
		}
	}
	for _, port := range []uint16{1, 24, 26, 80, 443, 464, 466, 586, 588, 2525, 65535} {
		mustAllow(t, egress.Policy{}, on("8.8.8.8", port))
	}
}

func TestAnAllowedNetworkIsOpenInEverySpelling(t *testing.T) {
	p := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}}
	for _, spelling := range spellings("10.1.2.3") {
		mustAllow(t, p, on(spelling, 443))
	}
	mustAllow(t, p, on("fd00:1::5", 443))
	mustAllow(t, p, on("8.8.8.8", 443))
	for _, outside := range []string{"10.2.0.1", "10.0.255.255", "fd00:2::1", "127.0.0.1", "169.254.169.254"} {
		mustRefuse(t, p, on(outside, 443))
	}
	mustRefuse(t, p, on("fd00:1::5%eth0", 443))
}

func TestNoAllowedNetworkOpensTunnels(t *testing.T) {
	p := egress.Policy{Loopback: true, Allow: []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("64:ff9b:1::/48"),
	}}
	for _, v4 := range []string{"8.8.8.8", "127.0.0.1", "10.0.0.1"} {
		for _, disguise := range disguises(v4) {
			mustRefuse(t, p, on(disguise, 443))
		}
	}
	for _, unspecified := range []string{"0.0.0.0", "::", "::ffff:0.0.0.0", "64:ff9b::"} {
		mustRefuse(t, p, on(unspecified, 443))
	}
}

func TestAnAllowedTranslatorDoesNotOpenWhatIsBehindIt(t *testing.T) {
	p := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96")}}
	mustRefuse(t, p, on("64:ff9b::127.0.0.1", 443))
	mustAllow(t, p, on("64:ff9b::8.8.8.8", 443))
}

func TestDevelopmentModeOpensLoopbackOnly(t *testing.T) {
	p := egress.Policy{Loopback: true}
	for _, addr := range []string{"127.0.0.1", "127.0.3.254", "127.255.255.255", "::1", "::ffff:127.0.0.1", "8.8.8.8"} {
		mustAllow(t, p, on(addr, 8080))
	}
	for _, v4 := range special4 {
		if !strings.HasPrefix(v4, "127.") {
			mustRefuse(t, p, on(v4, 8080))
		}
	}
	for _, v6 := range special6 {
		if v6 != "::1" {
			mustRefuse(t, p, on(v6, 8080))
		}
	}
	mustRefuse(t, p, on("64:ff9b::127.0.0.1", 8080))
	mustRefuse(t, p, on("::1%lo", 8080))
}

func TestOwnListenersAreNeverReached(t *testing.T) {
	local := netip.MustParseAddr("198.200.0.7") // public, this host's
	p := egress.Policy{
		Loopback: true,
		Allow:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Refuse: []netip.AddrPort{
			on("127.0.0.1", 8081), on("::ffff:10.0.0.5", 8082), on("0.0.0.0", 9001), on("::", 9002), on("fd00::5%eth0", 9003),
		},
		IsLocal: func(addr netip.Addr) bool { return addr == local },
	}
	for _, own := range []netip.AddrPort{
		on("127.0.0.1", 8081), on("::ffff:127.0.0.1", 8081), on("10.0.0.5", 8082), on("64:ff9b::10.0.0.5", 8082), on("fd00::5", 9003),
		on("127.0.0.1", 9001), on("127.9.9.9", 9001), on("::1", 9001), on("198.200.0.7", 9001), on("::ffff:198.200.0.7", 9001),
		on("127.0.0.1", 9002), on("::1", 9002), on("198.200.0.7", 9002),
	} {
		mustRefuse(t, p, own)
	}
	for _, other := range []netip.AddrPort{
		on("127.0.0.1", 8080), on("127.0.0.2", 8081), on("::1", 8081), on("10.0.0.6", 8082), on("198.200.0.7", 8081),
		on("8.8.8.8", 9001), on("10.0.0.5", 9001), on("2606:4700::1111", 9002),
	} {
		mustAllow(t, p, other)
	}
	t.Run("without knowing this host's addresses a port is closed on all", func(t *testing.T) {
		p := egress.Policy{Refuse: []netip.AddrPort{on("0.0.0.0", 9001)}}
		mustRefuse(t, p, on("8.8.8.8", 9001))
		mustAllow(t, p, on("8.8.8.8", 9002))
	})
}

func TestOneRefusedAnswerRefusesTheTarget(t *testing.T) {
	good, bad := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")
	for _, c := range []struct {
		claim   string
		answers []netip.Addr
		allowed bool
	}{
		{"all are public", []netip.Addr{good, netip.MustParseAddr("2606:4700::1111")}, true},
		{"the last is not", []netip.Addr{good, good, bad}, false},
		{"the first is not", []netip.Addr{bad, good}, false},
		{"there is none", nil, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if err := (egress.Policy{}).CheckAll(c.answers, 443); (err == nil) != c.allowed {
				t.Errorf("%v, want allowed %v", err, c.allowed)
			}
		})
	}
	if (egress.Policy{}).CheckAll([]netip.Addr{good}, 25) == nil {
		t.Error("a mail port was allowed")
	}
}

// Whatever bytes an IPv6 address has, what it carries in the well-known forms is
// checked as the address itself.
func TestAnEmbeddedAddressIsJudgedAsItself(t *testing.T) {
	p := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")}}
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		if rapid.Bool().Draw(t, "special") {
			b = netip.MustParseAddr(rapid.SampledFrom(special4).Draw(t, "range")).As4()
		}
		plain := p.Check(netip.AddrPortFrom(netip.AddrFrom4(b), 443))
		for _, spelling := range spellings(netip.AddrFrom4(b).String()) {
			if got := p.Check(on(spelling, 443)); (got == nil) != (plain == nil) {
				t.Fatalf("%s: %v, but %v: %v", spelling, got, netip.AddrFrom4(b), plain)
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	var p egress.Policy
	target := on("2606:4700:4700::1111", 443)
	b.ReportAllocs()
	for b.Loop() {
		if p.Check(target) != nil {
			b.Fatal("refused")
		}
	}
}
