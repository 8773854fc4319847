package session_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// Whatever addresses end when, and whatever ends the rest, what is refunded is at most what was paid, and a session
// whose addresses all live gets what one of that many gets.
func TestRefundsOfAddressesStayBelowWhatWasPaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "addresses")
		days := rapid.IntRange(1, 90).Draw(t, "days")
		paid := domain.Money(rapid.Int64Range(0, 1_000_000_000).Draw(t, "paid"))
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s := session.Session{Type: session.Static, Status: session.Active, Quantity: n, Days: days, ActivatedAt: start,
			ExpiresAt: start.Add(time.Duration(days) * session.Day), Money: session.Money{Charged: billing.Funds{Own: paid}}}
		for i := range n {
			s.Exits = append(s.Exits, session.Exit{IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})})
		}
		at, total := start, domain.Money(0)
		for i := range rapid.IntRange(0, n).Draw(t, "ended") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(s.ExpiresAt.Sub(at))-1).Draw(t, "wait")))
			share := s.UnusedShare(at)
			after, refund, kept, err := s.EndExit(i, at)
			if err != nil {
				t.Fatal(err)
			}
			if refund < 0 || kept < 0 || after.Money.Kept != s.Money.Kept+kept || refund > share || s.Live()-after.Live() != 1 {
				t.Fatalf("refund %v, kept %v of %v; %d live", refund, kept, share, after.Live())
			}
			after.Money.Refunded.Own += refund
			s, total = after, total+refund
			if left := s.UnusedShare(at); left+refund > share+1 || s.Live() > 0 && share-left-refund > domain.Money(n) {
				t.Fatalf("the rest is due %v and %v, before %v", left, refund, share)
			}
		}
		if total += s.UnusedShare(at); total > paid {
			t.Fatalf("refunded %v of %v", total, paid)
		}
	})
}

// What the seller has of an order is taken over place by place.
func TestASessionTakesOverWhatItsSellerHas(t *testing.T) {
	ip := func(n byte) session.Exit { return session.Exit{IP: netip.AddrFrom4([4]byte{192, 0, 2, n})} }
	ended := func(n byte) session.Exit { e := ip(n); e.Ended = true; return e }
	for _, c := range []struct {
		name           string
		own, has, want []session.Exit
	}{
		{"the same", []session.Exit{ip(1), ip(2)}, []session.Exit{ip(1), ip(2)}, []session.Exit{ip(1), ip(2)}},
		{"in another order", []session.Exit{ip(1), ip(2)}, []session.Exit{ip(2), ip(1)}, []session.Exit{ip(1), ip(2)}},
		{"one is another", []session.Exit{ip(1), ip(2)}, []session.Exit{ip(3), ip(2)}, []session.Exit{ip(3), ip(2)}},
		{"one ended here", []session.Exit{ended(1), ip(2)}, []session.Exit{ip(1), ip(2)}, []session.Exit{ended(1), ip(2)}},
		{"one ended here and another there", []session.Exit{ended(1), ip(2)}, []session.Exit{ip(1), ip(3)}, []session.Exit{ended(1), ip(3)}},
		{"all are others", []session.Exit{ip(1), ip(2)}, []session.Exit{ip(3), ip(4)}, []session.Exit{ip(3), ip(4)}},
		{"one is missing", []session.Exit{ip(1), ip(2)}, []session.Exit{ip(1)}, []session.Exit{ip(1), ip(2)}},
	} {
		s := session.Session{Exits: c.own}
		got, changed := s.TakeOver(c.has)
		same := len(got.Exits) == len(c.want)
		for i := range c.want {
			same = same && got.Exits[i] == c.want[i]
		}
		if !same || changed != (c.own[0] != c.want[0] || c.own[1] != c.want[1]) {
			t.Errorf("%s: %v, changed %t", c.name, got.Exits, changed)
		}
	}
}
