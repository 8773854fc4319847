package session_test

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func exitAt(ip string) session.Exit { return session.Exit{IP: netip.MustParseAddr(ip)} }

// A session is created, activated with an exit, rotated and terminated; nothing follows its end.
func ExampleSession_Rotate() {
	s := session.Session{ID: "sess_1", Type: session.Dynamic, Status: session.Creating}
	_, err := s.Rotate(exitAt("203.0.113.8"), noon)
	fmt.Println(errors.Is(err, session.ErrNotReady))

	s, _ = s.Activate([]session.Exit{exitAt("203.0.113.7")}, noon)
	s, _ = s.Rotate(exitAt("203.0.113.8"), noon.Add(time.Minute))
	fmt.Println(s.Status, session.Addresses(s.Exits), s.Rotation.Count)

	s, changed := s.Terminate(session.AgentRequest, noon.Add(time.Hour))
	fmt.Println(s.Status, changed)
	_, err = s.Rotate(exitAt("203.0.113.9"), noon.Add(time.Hour))
	fmt.Println(err)
	// Output:
	// true
	// active [203.0.113.8] 1
	// terminated true
	// SESSION_EXPIRED: the session is terminated; create a new one
}

// The time of a static session starts when it is active, and a renewal adds to its end.
func ExampleSession_Renew() {
	s := session.Session{Type: session.Static, Status: session.Creating, Days: 30}
	s, _ = s.Activate([]session.Exit{exitAt("203.0.113.7")}, noon)
	fmt.Println(s.ExpiresAt.Format(time.DateOnly))

	s, _ = s.Renew(30, noon.Add(10*session.Day))
	fmt.Println(s.ExpiresAt.Format(time.DateOnly))
	_, err := s.Renew(30, s.ExpiresAt)
	fmt.Println(errors.Is(err, session.ErrOver))
	// Output:
	// 2026-03-31
	// 2026-04-30
	// true
}

// The provider lost an address 20 days and one hour into 30: nine whole days are refunded.
func ExampleSession_UnusedShare() {
	s := session.Session{Type: session.Static, Status: session.Creating, Days: 30,
		Money: session.Money{Charged: billing.Funds{Own: 6 * domain.Dollar}}}
	s, _ = s.Activate([]session.Exit{exitAt("203.0.113.7")}, noon)
	fmt.Println(s.UnusedShare(noon.Add(20*session.Day + time.Hour)))
	fmt.Println(s.UnusedShare(s.ExpiresAt))
	// Output:
	// 1.8
	// 0
}

// Every fault of a request is named at once.
func ExampleCreateRequest_Check() {
	quantity, days := 200, 30
	_, err := session.CreateRequest{Type: session.Static, Quantity: &quantity, Days: &days,
		Location: session.Location{Country: "US"}}.Check()
	refusal, _ := errors.AsType[*domain.Error](err)
	for _, issue := range refusal.Details["fields"].([]domain.FieldIssue) {
		fmt.Println(issue.Field, issue.Issue)
	}
	// Output:
	// product_no is required: the product_no of a product that is listed
	// quantity must be a whole number from 1 to 100
}
