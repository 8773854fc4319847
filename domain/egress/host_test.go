package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/egress"
)

func TestWhatLooksNumericIsRefusedNotResolved(t *testing.T) {
	for _, host := range []string{
		"127.1", "127.0.1", "2130706433", "0", "1", "0x7f000001", "0X7F000001", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1",
		"017700000001", "127.0.0.01", "127.0.0.0x1", "127.0.0.1.", "127.0.0.1..", "1.2.3.4.5", "256.256.256.256",
		"999999999999", "1.2.3.08", "shop.test.1", "shop.test.0x7f", "0x", "a.0x", "00000000", "+127.1", "-1.1",
	} {
		if !egress.LooksNumeric(host) {
			t.Errorf("LooksNumeric(%q) is false", host)
		}
		if addr, err := egress.ParseHost(host); !errors.Is(err, egress.ErrRefused) || addr.IsValid() {
			t.Errorf("ParseHost(%q) = %v, %v; want it refused", host, addr, err)
		}
	}
}

func TestNamesAreNames(t *testing.T) {
	for _, host := range []string{
		"localhost", "shop.test", "Shop.TEST", "shop.test.", "1.2.3.4.in-addr.arpa", "127.0.0.1.nip.io", "0x7f.1.example.com",
		"1password.com", "4chan.org", "a.0xyz", "x0", "dead.beef", "xn--bcher-kva.example", "_dmarc.shop.test", "a-b.c",
		strings.Repeat("a", 249) + ".com",
	} {
		if egress.LooksNumeric(host) {
			t.Errorf("LooksNumeric(%q) is true", host)
		}
		if addr, err := egress.ParseHost(host); err != nil || addr.IsValid() {
			t.Errorf("ParseHost(%q) = %v, %v; want a name", host, addr, err)
		}
	}
}

func TestAddressesInTheirUsualFormAreAddresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "8.8.8.8", "::1", "2001:DB8::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1%eth0"} {
		if egress.LooksNumeric(host) {
			t.Errorf("LooksNumeric(%q) is true", host)
		}
		if addr, err := egress.ParseHost(host); err != nil || addr != netip.MustParseAddr(host) {
			t.Errorf("ParseHost(%q) = %v, %v; want the address", host, addr, err)
		}
	}
}

func TestWhatIsNeitherIsRefused(t *testing.T) {
	for _, host := range []string{
		"", ".", "..", "a..b", ".a", " 127.0.0.1", "127.0.0.1 ", "a b", "a\r\nb", "a\x00b", "a/b", "a:80", "[::1]", "user@a",
		"a%00", "::g", "1::2::3", "bücher.example", "１２７.0.0.1", "127。0。0。1", strings.Repeat("a", 254),
	} {
		if addr, err := egress.ParseHost(host); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("ParseHost(%q) = %v, %v; want it refused", host, addr, err)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, host := range []string{"127.1", "shop.test", "::1%a", "0x7f.1", "1.2.3.4."} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		addr, err := egress.ParseHost(host)
		if err == nil && !addr.IsValid() && (egress.LooksNumeric(host) || strings.ContainsAny(host, " \r\n\x00:%/@[]")) {
			t.Errorf("%q passed as a name", host)
		}
	})
}
