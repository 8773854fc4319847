package worker_test

import (
	"fmt"
	"net/netip"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// The words of a proxy user name ask for a worker with an exit of its own.
func ExampleParse() {
	base, words := worker.SplitUserName("abc123r0-country-de-session-w07-ttl-10m")
	p, err := worker.Parse(words)
	fmt.Println(base, p.Country, p.Name, p.TTL, err)

	_, err = worker.Parse("-session-w07-ttl-25h")
	fmt.Println(err)
	// Output:
	// abc123r0 DE w07 10m0s <nil>
	// the word "ttl-25h" in the user name is not a time from 10s to 24h in s, m or h
}

// The exit that the fewest workers have is picked, and never the one that is left.
func ExamplePick() {
	a, b, c := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3")
	got, ok := worker.Pick([]netip.Addr{a, b, c}, map[netip.Addr]int{a: 2, b: 1}, c, "w07")
	fmt.Println(got, ok)
	// Output: 203.0.113.2 true
}

// With a time to live the next new connection after it gets another exit.
func ExampleWorker_Due() {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := worker.Worker{Name: "w07", Settings: worker.Settings{TTL: 10 * time.Minute}, AssignedAt: begin}
	fmt.Println(w.Due(begin.Add(9*time.Minute)), w.Due(begin.Add(10*time.Minute)))
	w = w.Move(session.Exit{IP: netip.MustParseAddr("203.0.113.2")}, begin.Add(10*time.Minute))
	fmt.Println(w.Due(begin.Add(11*time.Minute)), w.Turn)
	// Output:
	// false true
	// false 1
}
