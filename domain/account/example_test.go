package account_test

import (
	"errors"
	"fmt"
	"net/netip"

	"agentproxy/domain/account"
)

// A registration without a code belongs to the operator's default referrer; a code in another
// case is refused, not ignored.
func ExampleAssign() {
	partner := account.Referrer{Name: "Partner", Code: "Partner-1"}
	byCode := func(string) (account.Referrer, error) { return partner, nil }
	fallback := func() (account.Referrer, error) { return account.Referrer{Name: "OpenAgent"}, nil }

	a, _ := account.Assign("", false, byCode, fallback)
	fmt.Println(a.Referrer.Name, a.Named)
	a, _ = account.Assign(" Partner-1 ", true, byCode, fallback)
	fmt.Println(a.Referrer.Name, a.Named)
	_, err := account.Assign("partner-1", true, byCode, fallback)
	fmt.Println(errors.Is(err, account.ErrReferralCode))
	// Output:
	// OpenAgent false
	// Partner true
	// true
}

// The checksum of a key refuses a mistyped one without a query of the database.
func ExampleMayBeEarlyKey() {
	key := account.EarlyAPIKey("0123456789012345678901234567890123456789abc")
	typo := key[:len(key)-1] + "!"
	fmt.Println(account.MayBeEarlyKey(key), account.MayBeEarlyKey(typo), len(account.Hint(key)))
	// Output: true false 4
}

// A key may hand out no more than it has.
func ExampleDownscope() {
	callers := []account.Scope{account.AccountRead, account.SessionsWrite}
	got, err := account.Downscope([]account.Scope{account.AccountRead}, callers)
	fmt.Println(got, err)
	_, err = account.Downscope(account.Scopes, callers)
	fmt.Println(err != nil)
	// Output:
	// [account:read] <nil>
	// true
}

// Accounts count together by network: a /24 of IPv4, a /48 of IPv6.
func ExampleNetwork() {
	fmt.Println(account.Network(netip.MustParseAddr("203.0.113.7")))
	fmt.Println(account.Network(netip.MustParseAddr("2001:db8:1:2:3:4:5:6")))
	// Output:
	// 203.0.113.0/24
	// 2001:db8:1::/48
}
