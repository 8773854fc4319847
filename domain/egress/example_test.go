package egress_test

import (
	"fmt"
	"net/netip"

	"agentproxy/domain/egress"
)

// Only public addresses are dialled, whatever their spelling, and mail ports never are.
func ExamplePolicy_Check() {
	var p egress.Policy
	for _, target := range []string{"93.184.215.14:443", "127.0.0.1:80", "169.254.169.254:80", "10.0.0.1:443",
		"[::ffff:127.0.0.1]:80", "[64:ff9b::7f00:1]:80", "93.184.215.14:25"} {
		fmt.Println(target, p.Check(netip.MustParseAddrPort(target)) == nil)
	}
	// Output:
	// 93.184.215.14:443 true
	// 127.0.0.1:80 false
	// 169.254.169.254:80 false
	// 10.0.0.1:443 false
	// [::ffff:127.0.0.1]:80 false
	// [64:ff9b::7f00:1]:80 false
	// 93.184.215.14:25 false
}

// One private answer refuses a name: it may be the only one at the next lookup.
func ExamplePolicy_CheckAll() {
	answers := []netip.Addr{netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("192.168.0.1")}
	fmt.Println(egress.Policy{}.CheckAll(answers[:1], 443) == nil, egress.Policy{}.CheckAll(answers, 443) == nil)
	// Output: true false
}

// A host is an address, a name to look up, or a number that resolvers read in different ways.
func ExampleParseHost() {
	for _, host := range []string{"2001:db8::1", "shop.example", "127.1", "0x7f.1"} {
		addr, err := egress.ParseHost(host)
		fmt.Println(host, addr.IsValid(), err == nil)
	}
	// Output:
	// 2001:db8::1 true true
	// shop.example false true
	// 127.1 false false
	// 0x7f.1 false false
}
