package proxyseller_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/test/fake/seller"
)

func TestOrderWithoutAddresses(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	s.SetDelay(1000)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 1))
	if err != nil {
		t.Fatal(err)
	}
	find := func(want int) {
		t.Helper()
		if found, err := p.Find(t.Context(), ispIntent("ord_2", 1)); err != nil || len(found) != want {
			t.Errorf("found %+v, %v; want %d", found, err, want)
		}
	}
	read := func(class procurement.Class, state procurement.State) {
		t.Helper()
		if read, err := p.Read(t.Context(), d.Ref); procurement.ClassOf(err) != class || read.State != state {
			t.Errorf("it is %+v, %v; want %s %s", read, err, class, state)
		}
	}
	read("", procurement.Pending)
	find(1)
	s.Age(2 * time.Hour) // a stock-out
	read("", procurement.Pending)
	find(1)
	s.SetStatus(d.Ref, "RETURN")
	read("", procurement.Gone)
	find(0)
	s.SetStatus(d.Ref, "NOT_PAYED")
	read(procurement.NotFound, "")
	find(0)
	s.SetStatus(d.Ref, "PAYED")
	s.Age(24 * time.Hour)
	read(procurement.NotFound, "")
	find(0)
}

// TestFindsALostOrderAmongMany loses an order that is not on the first page of order/list.
func TestFindsALostOrderAmongMany(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s, p := openAddresses(t)
	s.SetDelay(1000)
	s.SetPageLimit(2)
	s.Next("/order/make", seller.DropAnswer)
	if _, err := p.Order(t.Context(), ispIntent("ord_0", 2)); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Fatal(err)
	}
	for n := range 5 {
		if _, err := p.Order(t.Context(), ispIntent(fmt.Sprint("ord_", n+1), 1)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := p.Find(t.Context(), ispIntent("ord_0", 2))
	if err != nil || len(found) != 6 {
		t.Fatalf("%d found, %v", len(found), err)
	}
	lost := found[len(found)-1]
	for _, d := range found {
		if d.Ref == s.Refs()[0] {
			lost = d
		}
	}
	if lost.Ref != s.Refs()[0] || lost.Cost != 4*domain.Dollar || lost.CreatedAt.Before(began.Add(-time.Minute)) {
		t.Errorf("the lost one is %+v", lost)
	}
	s.Age(48 * time.Hour)
	calls := s.Calls("/order/list")
	if found, err := p.Find(t.Context(), ispIntent("ord_0", 2)); err != nil || len(found) != 0 || s.Calls("/order/list") != calls+1 {
		t.Errorf("after two days %d are found in %d pages, %v", len(found), s.Calls("/order/list")-calls, err)
	}
}

func TestDoubtsStrangeOrderLists(t *testing.T) {
	t.Parallel()
	old := func(n int, at string) string {
		return fmt.Sprintf(`{"order_number":"%d_%d","summ":"$2.00","status_type":"PAYED","date_insert":%q}`, n, n, at)
	}
	list := func(pages, items string) string {
		return `{"status":"success","data":{"metadata":{` + pages + `},"items":` + items + `},"errors":[]}`
	}
	const two, one = `"total_pages":2`, `"total_pages":1`
	now := time.Now().UTC().Format(time.RFC3339)
	for claim, c := range map[string]struct {
		answers []string
		class   procurement.Class
		found   int
	}{
		"no items":                {[]string{list(one, `null`), list(one, `null`), list(one, `null`)}, procurement.Temporary, 0},
		"no number of pages":      {[]string{list(``, `[]`), list(``, `[]`), list(``, `[]`)}, procurement.Temporary, 0},
		"an order without number": {[]string{list(one, `[{"status_type":"PAYED"}]`)}, procurement.Temporary, 0},
		"an order without time":   {[]string{list(one, `[{"order_number":"1_1","status_type":"PAYED"}]`)}, "", 1},
		"a new state":             {[]string{list(one, `[{"order_number":"1_1","status_type":"CHECK","date_insert":"`+now+`"}]`)}, "", 1},
		"the oldest first":        {[]string{list(two, `[`+old(1, "2020-01-01T00:00:00Z")+`,`+old(2, "2021-01-01T00:00:00Z")+`]`), list(two, `[`+old(3, now)+`]`)}, "", 1},
		"the newest first":        {[]string{list(two, `[`+old(3, now)+`,`+old(1, "2020-01-01T00:00:00Z")+`]`)}, "", 1},
		"none, and no pages":      {[]string{list(`"total_pages":0`, `[]`)}, "", 0},
	} {
		t.Run(claim, func(t *testing.T) {
			s, p := openAddresses(t)
			for _, body := range c.answers {
				s.Answer("/order/list", body)
			}
			found, err := p.Find(t.Context(), ispIntent("ord_1", 1))
			if procurement.ClassOf(err) != c.class || len(found) != c.found {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

// TestARenewalWithoutAnOrderIsRead renews with a success that names no order.
func TestARenewalWithoutAnOrderIsRead(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	d, err := p.Order(t.Context(), ispIntent("ord_1", 1))
	if err != nil {
		t.Fatal(err)
	}
	before := readLive(t, p, d.Ref)
	s.HideRenewals()
	done, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 1))
	if err != nil || len(done) != 1 || !done[0].ExpiresAt.After(before.ExpiresAt) {
		t.Errorf("renewed %+v, %v", done, err)
	}
}
