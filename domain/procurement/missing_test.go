package procurement_test

import (
	"testing"
	"time"

	"agentproxy/domain/procurement"
)

func TestSellersFault(t *testing.T) {
	for _, c := range []struct {
		missing, live int
		want          bool
	}{
		{0, 0, false}, {0, 100, false},
		{1, 1, false}, {1, 2, false}, {1, 1000, false}, // a single one is the order's
		{2, 2, true}, {2, 3, true}, {2, 19, true}, // more than a tenth
		{2, 20, false}, {2, 100, false},
		{5, 5, true}, {5, 49, true}, {5, 50, false},
		{6, 60, true}, {6, 100_000, true}, // more than five, whatever the share
	} {
		if got := (procurement.Owed{Live: c.live, Missing: c.missing}).SellersFault(); got != c.want {
			t.Errorf("%d of %d missing: %v", c.missing, c.live, got)
		}
	}
}

var start = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

func TestAnOrderIsLostAfterASecondLook(t *testing.T) {
	one, all := procurement.Owed{Live: 3, Missing: 1}, procurement.Owed{Live: 3, Missing: 3}
	o := procurement.Order{Status: procurement.Confirmed}
	if o.Lost(one, start) {
		t.Error("one that is not missing is lost")
	}
	o = o.RecordMissing(start)
	if o.LostAt != start || o.NextAt != start.Add(procurement.RereadAfter) {
		t.Errorf("missing, it is %+v", o)
	}
	later := start.Add(procurement.LostAfter)
	if o = o.RecordMissing(later); o.LostAt != start {
		t.Errorf("missing again, it is missing since %s", o.LostAt)
	}
	for _, c := range []struct {
		now  time.Time
		m    procurement.Owed
		want bool
	}{{start, one, false}, {later.Add(-1), one, false}, {later, one, true}, {later, all, false}, {later.Add(time.Hour), all, false}} {
		if got := o.Lost(c.m, c.now); got != c.want {
			t.Errorf("after %s, with %+v: %v", c.now.Sub(start), c.m, got)
		}
	}
	if procurement.LostAfter <= time.Hour {
		t.Error("not every order of the provider is read in that time")
	}
}
