package exit_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/exit"
)

func ranges(t testing.TB, lines ...string) *exit.Ranges {
	t.Helper()
	var b exit.RangesBuilder
	for _, line := range lines {
		if err := b.Line(line); err != nil {
			t.Fatal(err)
		}
	}
	return b.Ranges()
}

func TestRangesLookup(t *testing.T) {
	t.Parallel()
	r := ranges(t,
		`10.0.0.0/8 country=US network_type=hosting asn=AS64500 as_name="Example Net"`,
		"10.1.0.0/16 country=LT  city=Vilnius	timezone=Europe/Vilnius",
		`10.1.2.3/32 region="New York" listed=b listed=a`,
		"2001:db8::/32 network_type=mobile asn=7")
	for addr, want := range map[string]exit.Known{
		"10.9.9.9":        {Country: "US", Network: exit.Hosting, ASN: 64500, ASName: "Example Net"},
		"::ffff:10.9.9.9": {Country: "US", Network: exit.Hosting, ASN: 64500, ASName: "Example Net"},
		"10.1.9.9": {Country: "LT", City: "Vilnius", Timezone: "Europe/Vilnius", Network: exit.Hosting, ASN: 64500,
			ASName: "Example Net"},
		"10.1.2.3": {Country: "LT", Region: "New York", City: "Vilnius", Timezone: "Europe/Vilnius", Network: exit.Hosting,
			ASN: 64500, ASName: "Example Net", Listed: []string{"a", "b"}},
		"192.0.2.1":   {},
		"2001:db8::1": {Network: exit.Mobile, ASN: 7},
		"2001:db9::1": {},
		"::":          {},
	} {
		if got := r.Lookup(netip.MustParseAddr(addr)); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: got %+v, want %+v", addr, got, want)
		}
	}
	if got := (&exit.Ranges{}).Lookup(netip.MustParseAddr("10.0.0.1")); got.Country != "" {
		t.Errorf("without ranges: %+v", got)
	}
	if r.Len() != 4 {
		t.Errorf("%d networks", r.Len())
	}
}

func TestLinesThatAreRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                            "is not a network",
		"10.0.0.0":                                    "is not a network",
		"10.0.0.0/8":                                  "no facts",
		"10.0.0.1/8 country=US":                       "the network is 10.0.0.0/8",
		"::ffff:10.0.0.0/104 country=US":              "write it as IPv4",
		"10.0.0.0/8 country":                          "is not name=value",
		"10.0.0.0/8 country=":                         "has no value",
		"10.0.0.0/8 country=us":                       "in upper case",
		"10.0.0.0/8 country=XX":                       "ISO 3166-1",
		"10.0.0.0/8 country=US country=DE":            "is there twice",
		"10.0.0.0/8 contry=US":                        `"contry" is not the name of a fact`,
		"10.0.0.0/8 risk=5":                           `"risk" is not the name of a fact`,
		"10.0.0.0/8 asn=AS7922x":                      "number of an autonomous system",
		"10.0.0.0/8 asn=0":                            "number of an autonomous system",
		"10.0.0.0/8 asn=4294967296":                   "number of an autonomous system",
		"10.0.0.0/8 network_type=unknown":             "is not one of",
		"10.0.0.0/8 timezone=Berlin time":             "is not name=value",
		"10.0.0.0/8 timezone=../etc":                  "name of a timezone",
		"10.0.0.0/8 listed=A":                         "is not a label",
		`10.0.0.0/8 city="New York`:                   "quotes are not closed",
		`10.0.0.0/8 city="New"York`:                   "quotes are not closed",
		"10.0.0.0/8 city=a\x01b":                      "control characters",
		"10.0.0.0/8 city=" + strings.Repeat("x", 101): "longer than 100",
	} {
		var b exit.RangesBuilder
		err := b.Line(line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
		if n := b.Ranges().Len(); n != 0 {
			t.Errorf("%q left %d networks", line, n)
		}
	}
	var b exit.RangesBuilder
	_ = b.Line("10.0.0.0/8 country=US")
	if err := b.Line("10.0.0.0/8 country=DE"); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a network that is there twice: %v", err)
	}
}

func FuzzLine(f *testing.F) {
	for _, line := range []string{"10.0.0.0/8 country=US", `::/0 city="New York" listed=a`, "0.0.0.0/0 asn=AS1"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var b exit.RangesBuilder
		if err := b.Line(line); err == nil && b.Ranges().Len() != 1 {
			t.Errorf("%q was taken and has no network", line)
		}
	})
}

// A look-up in files of all lengths of prefixes costs less than two microseconds on a machine of 2026.
func BenchmarkRangesLookup(b *testing.B) {
	var lines []string
	for bits := 8; bits <= 32; bits++ {
		p := netip.PrefixFrom(netip.MustParseAddr("10.1.2.3"), bits).Masked()
		lines = append(lines, p.String()+" country=US network_type=hosting")
	}
	r, addr := ranges(b, lines...), netip.MustParseAddr("10.1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		r.Lookup(addr)
	}
}
