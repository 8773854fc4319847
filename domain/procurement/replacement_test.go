package procurement_test

import (
	"net/netip"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func TestWhatAProviderMayGive(t *testing.T) {
	one, two, three := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8::3")
	is := func(want netip.Addr) func(netip.Addr) bool { return func(a netip.Addr) bool { return a == want } }
	for _, c := range []struct {
		claim string
		in    procurement.Intent
		addr  netip.Addr
		want  bool
	}{
		{"any without a rule", procurement.Intent{}, one, true},
		{"none that is avoided", procurement.Intent{Avoid: map[string]bool{"198.51.100.1": true}}, one, false},
		{"another one", procurement.Intent{Avoid: map[string]bool{"198.51.100.1": true}}, two, true},
		{"one that passes", procurement.Intent{Passes: is(one)}, one, true},
		{"none that does not", procurement.Intent{Passes: is(one)}, two, false},
		{"none that passes and is avoided", procurement.Intent{Passes: is(one), Avoid: map[string]bool{"198.51.100.1": true}}, one, false},
		{"never the replaced one", procurement.Replacement{Addr: one}.Intent(""), one, false},
		{"none that a replacement avoids", procurement.Replacement{Addr: one, Avoid: map[string]bool{three.String(): true}}.Intent(""), three, false},
		{"none that does not pass a replacement", procurement.Replacement{Addr: one, Passes: is(three)}.Intent(""), two, false},
		{"what a replacement allows", procurement.Replacement{Addr: one, Passes: is(three)}.Intent(""), three, true},
	} {
		if got := c.in.Allows(c.addr); got != c.want {
			t.Errorf("%s: %v", c.claim, got)
		}
	}
	us := session.Location{Country: "US"}
	if in := (procurement.Replacement{Key: "rep", Addr: one, Location: us}).Intent("isp"); in.Key != "rep" || in.SKU != "isp" || in.Location != us ||
		in.Quantity != 1 || in.Type != session.Static {
		t.Errorf("the intent is %+v", in)
	}
}
