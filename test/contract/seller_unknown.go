package contract

import (
	"slices"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// sellerUnknown orders during a fault and returns the order as the core stores it.
func sellerUnknown(t *testing.T, s Selling, in procurement.Intent, fault func()) (procurement.Order, error) {
	t.Helper()
	now := time.Now()
	before, err := s.Provider.Find(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	o := procurement.Order{ID: in.Key, Kind: procurement.Purchase, Intent: in, Status: procurement.Planned, PlannedAt: now}
	var snap procurement.Snapshot
	for _, d := range before {
		snap.Refs = append(snap.Refs, d.Ref)
	}
	if snap.Funds, err = s.Provider.Balance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, err = o.Send(snap, now); err != nil {
		t.Fatal(err)
	}
	fault()
	_, err = s.Provider.Order(t.Context(), in)
	return o, err
}

func sellerLostAnswer(t *testing.T, s Selling, in procurement.Intent) {
	if s.LoseAnswer == nil {
		t.Skip("no answer can be lost")
	}
	other := sellerBuy(t, s.Provider, sellerIntent(in, 7))
	o, err := sellerUnknown(t, s, in, s.LoseAnswer)
	if procurement.ClassOf(err) != procurement.Ambiguous {
		t.Fatalf("the answer was lost, and the error is %v", err)
	}
	sellerSold(t, s, 2)
	found, err := s.Provider.Find(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	verdict, d := procurement.Decide(o, s.Provider.Capabilities().Labels(o.Intent.Type), procurement.Evidence{Found: found}, time.Now())
	if verdict != procurement.Adopt || d.Ref == other.Ref {
		t.Fatalf("%s of %d found: %+v", verdict, len(found), d.Ref)
	}
	read, err := s.Provider.Read(t.Context(), d.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if live := sellerLive(t, s.Provider, read); in.Type == session.Dynamic && s.Provider.Capabilities().Direct && live.Access.Password == "" {
		t.Error("the access that was found has no password")
	}
	sellerSold(t, s, 2)
}

func sellerLostRequest(t *testing.T, s Selling, in procurement.Intent) {
	if s.LoseRequest == nil {
		t.Skip("no request can be lost")
	}
	sellerBuy(t, s.Provider, sellerIntent(in, 7))
	o, err := sellerUnknown(t, s, in, s.LoseRequest)
	if err == nil {
		t.Fatal("the request was lost, and there is no error")
	}
	found, err := s.Provider.Find(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	funds, err := s.Provider.Balance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := procurement.Evidence{Found: found, Funds: funds}
	if v, _ := procurement.Decide(o, s.Provider.Capabilities().Labels(o.Intent.Type), e, o.SentAt); v != procurement.Wait {
		t.Errorf("at once: %s", v)
	}
	if v, _ := procurement.Decide(o, s.Provider.Capabilities().Labels(o.Intent.Type), e, o.SentAt.Add(procurement.ListingDelay)); v != procurement.Absent {
		t.Errorf("later: %s", v)
	}
	sellerSold(t, s, 1)
}

func sellerRepeats(t *testing.T, s Selling, in procurement.Intent) {
	caps := s.Provider.Capabilities()
	if !caps.Idempotent && !caps.InProcess {
		t.Skip("the seller repeats an order that is sent again")
	}
	first := sellerBuy(t, s.Provider, in)
	for range 3 {
		again := sellerBuy(t, s.Provider, in)
		if again.Ref != first.Ref || again.Access != first.Access || !slices.Equal(again.IPs, first.IPs) {
			t.Errorf("repeated, the order got %s, want %s", again.Ref, first.Ref)
		}
	}
	sellerSold(t, s, 1)
}
