package traffic_test

import (
	"fmt"
	"time"

	"agentproxy/domain/traffic"
)

// A gateway leases traffic before it relays, reports what moved, and never gets more than is left.
func ExampleRenew() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	u := traffic.Usage{Limit: 1_000_000, Up: 160_000, Down: 800_000}
	d, lease, grant := traffic.Renew(u, traffic.Lease{}, traffic.LeaseRequest{Want: 1 << 20}, now)
	fmt.Println("granted", grant.Granted, "unused", lease.Unused())

	u.Leased += d.Leased
	d, _, grant = traffic.Renew(u, lease, traffic.LeaseRequest{Up: 5_000, Down: 35_000, Want: 1 << 20}, now.Add(time.Second))
	fmt.Println("used", d.Up+d.Down, "exhausted", grant.Outcome == traffic.Exhausted)
	// Output:
	// granted 40000 unused 40000
	// used 40000 exhausted true
}

// A notice is due when 80 and when 95 percent of the traffic are used.
func ExampleUsage_ThresholdsReached() {
	u := traffic.Usage{Limit: 1_000_000_000, Down: 790_000_000}
	fmt.Println(u.ThresholdsReached(traffic.Delta{Down: 9_999_999}), u.ThresholdsReached(traffic.Delta{Down: 10_000_000}))
	fmt.Println(u.ThresholdsReached(traffic.Delta{Up: 60_000_000, Down: 100_000_000}))
	// Output:
	// [] [80]
	// [80 95]
}

// The user name is the session and its rotation; the password is derived and replaceable.
func ExampleUser() {
	u := traffic.User{SessionID: "sess_0123456789abcdefghij", Number: 3}
	fmt.Println(u)
	back, ok := traffic.ParseUser(u.String())
	fmt.Println(back == u, ok)

	key := []byte("the operator's secret")
	first, second := traffic.Password(key, u.SessionID), traffic.NumberedPassword(key, u.SessionID, 1)
	number, _ := traffic.PasswordNumber(second)
	fmt.Println(traffic.CheckPassword(key, u.SessionID, first), number, first == second[:32])
	// Output:
	// 0123456789abcdefghijr3
	// true true
	// true 1 false
}
