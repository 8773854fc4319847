package proxyseller_test

import (
	"fmt"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

func TestRenews(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	ordered, err := p.Order(t.Context(), ispIntent("ord_1", 2))
	if err != nil {
		t.Fatal(err)
	}
	before := readLive(t, p, ordered.Ref)
	again := ispIntent("ord_2", 2)
	again.Days = 90
	done, err := p.Renew(t.Context(), before.Ref, again)
	if err != nil || len(done) != 2 {
		t.Fatalf("renewed %+v, %v", done, err)
	}
	after := readLive(t, p, before.Ref)
	for i, ip := range after.IPs {
		if ip.Addr != before.IPs[i].Addr || ip.ID == before.IPs[i].ID || done[i].Addr != ip.Addr || !done[i].ExpiresAt.Equal(ip.ExpiresAt) {
			t.Errorf("it was %+v, is %+v, and was returned as %+v", before.IPs[i], ip, done[i])
		}
		if !ip.ExpiresAt.After(before.IPs[i].ExpiresAt.AddDate(0, 0, 88)) {
			t.Errorf("three months later than %v is %v", before.IPs[i].ExpiresAt, ip.ExpiresAt)
		}
		if ip.User != before.IPs[i].User || ip.Password != before.IPs[i].Password {
			t.Error("the credential has changed")
		}
	}
	if s.Renewals() != 1 || s.Spent() != 14*domain.Dollar || s.Orders() != 1 {
		t.Errorf("%d renewals, spent %s, %d orders", s.Renewals(), s.Spent(), s.Orders())
	}
}

func TestRenewalInDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim    string
		change   func(s *proxyseller.Server)
		class    procurement.Class
		renewals int
	}{
		{"one runs already", func(s *proxyseller.Server) {
			s.Refuse("/prolong/make", 57, "Prolong for this order is already in progress")
		}, procurement.Ambiguous, 0},
		{"the answer is lost", func(s *proxyseller.Server) { s.Next("/prolong/make", seller.DropAnswer) }, procurement.Ambiguous, 1},
		{"the answer is garbage", func(s *proxyseller.Server) { s.Next("/prolong/make", seller.Garbage) }, procurement.Ambiguous, 1},
		{"it has no number", func(s *proxyseller.Server) {
			s.Answer("/prolong/make", `{"status":"success","data":{"total":2},"errors":[]}`)
		}, procurement.Ambiguous, 0},
		{"its end is not listed yet", func(s *proxyseller.Server) { s.SetRenewing(5) }, procurement.Ambiguous, 1},
		{"it cannot be read afterwards", func(s *proxyseller.Server) {
			s.Next("/proxy/list", seller.None, seller.Failed, seller.Failed, seller.Failed)
		}, procurement.Ambiguous, 1},
		{"there is no money", func(s *proxyseller.Server) { s.SetBalance(0) }, procurement.InsufficientFunds, 0},
		{"the money goes between", func(s *proxyseller.Server) { s.Next("/prolong/make", seller.NoFunds) }, procurement.InsufficientFunds, 0},
		{"the edge refuses", func(s *proxyseller.Server) { s.Next("/prolong/make", seller.RateLimited) }, procurement.RateLimited, 0},
		{"the calculation fails", func(s *proxyseller.Server) { s.Refuse("/prolong/calc", 99, "no") }, procurement.Invalid, 0},
		{"the order is gone", func(s *proxyseller.Server) { s.Vanish(s.Refs()[0]) }, procurement.NotFound, 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s, p := openAddresses(t)
			d, err := p.Order(t.Context(), ispIntent("ord_1", 1))
			if err != nil {
				t.Fatal(err)
			}
			before := readLive(t, p, d.Ref)
			c.change(s)
			if done, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 1)); procurement.ClassOf(err) != c.class {
				t.Errorf("renewed %+v, %v; want %s", done, err, c.class)
			}
			if s.Renewals() != c.renewals || s.Calls("/prolong/make") > 1 {
				t.Errorf("%d renewals of %d calls, want %d", s.Renewals(), s.Calls("/prolong/make"), c.renewals)
			}
			if c.class != procurement.Ambiguous {
				return
			}
			s.SetRenewing(0)
			for range 6 {
				d, err = p.Read(t.Context(), d.Ref)
			}
			if moved := d.ExpiresAt.After(before.ExpiresAt); err != nil || moved != (c.renewals == 1) {
				t.Errorf("read afterwards, the end has moved: %v, %v", moved, err)
			}
		})
	}
	t.Run("it is dearer than it may be", func(t *testing.T) {
		s, p := openAddresses(t)
		d, _ := p.Order(t.Context(), ispIntent("ord_1", 1))
		readLive(t, p, d.Ref)
		in := ispIntent("ord_2", 1)
		in.MaxCost = 2*domain.Dollar - 1
		if _, err := p.Renew(t.Context(), d.Ref, in); procurement.ClassOf(err) != procurement.Conflict || s.Renewals() != 0 {
			t.Errorf("renewed: %v", err)
		}
		in.MaxCost++
		if _, err := p.Renew(t.Context(), d.Ref, in); err != nil {
			t.Errorf("at its price: %v", err)
		}
	})
}

func TestFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	old, err := p.Order(t.Context(), ispIntent("ord_1", 1))
	if err != nil {
		t.Fatal(err)
	}
	readLive(t, p, old.Ref)
	s.Next("/order/make", seller.DropAnswer)
	if _, err := p.Order(t.Context(), ispIntent("ord_2", 3)); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Fatal(err)
	}
	// Another order follows, so that it is not the latest any more.
	later, err := p.Order(t.Context(), ispIntent("ord_3", 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, delivered := range []bool{false, true} {
		found, err := p.Find(t.Context(), ispIntent("ord_2", 3))
		if err != nil {
			t.Fatal(err)
		}
		quantities := map[string]int{}
		for _, d := range found {
			quantities[d.Ref] = d.Quantity
			if d.State != procurement.Pending || len(d.IPs) > 0 {
				t.Errorf("the list shows %+v", d)
			}
			if delivered && d.Location.Country != "US" {
				t.Errorf("%s is in %q", d.Ref, d.Location.Country)
			}
		}
		want := map[string]int{old.Ref: 1, s.Refs()[1]: 0, later.Ref: 0}
		if delivered {
			want = map[string]int{old.Ref: 1, s.Refs()[1]: 3, later.Ref: 2}
		}
		if fmt.Sprint(quantities) != fmt.Sprint(want) {
			t.Errorf("delivered %v: found %v, want %v", delivered, quantities, want)
		}
	}
	t.Run("also after a renewal, under the same ref", func(t *testing.T) {
		if _, err := p.Renew(t.Context(), old.Ref, ispIntent("ord_4", 1)); err != nil {
			t.Fatal(err)
		}
		found, err := p.Find(t.Context(), ispIntent("ord_5", 1))
		if err != nil || len(found) != 3 {
			t.Fatalf("%d found, %v", len(found), err)
		}
		for _, d := range found {
			if !strings.Contains(fmt.Sprint(s.Refs()), d.Ref) {
				t.Errorf("%s is a new ref", d.Ref)
			}
		}
	})
}
