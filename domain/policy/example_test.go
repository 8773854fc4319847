package policy_test

import (
	"fmt"
	"net/netip"

	"agentproxy/domain/policy"
)

// The operator's rules come first; a session's own may only refuse more.
func ExampleLayers() {
	var operator, own policy.Builder
	_ = operator.Deny("10.0.0.0/8")
	_ = own.Deny(".ads.example")
	_ = own.Port("443")
	rules := policy.Layers{Operator: operator.Rules(), Session: own.Rules()}

	fmt.Println(rules.Name("shop.example", 443).Refuses())
	fmt.Println(rules.Name("shop.example", 80))
	fmt.Println(rules.Name("x.ads.example", 443))
	fmt.Println(rules.Address("shop.example", netip.MustParseAddr("10.1.2.3")))
	// Output:
	// false
	// {session ports false port}
	// {session .ads.example false host}
	// {operator 10.0.0.0/8 false address}
}
