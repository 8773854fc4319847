package procurement_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func TestCheckRenewed(t *testing.T) {
	early, late := sentAt.AddDate(0, 0, 30), sentAt.AddDate(0, 0, 31)
	renewed := func(end time.Time) procurement.Renewed { return procurement.Renewed{ExpiresAt: end} }
	failed := func(c procurement.Class, reason string) procurement.Renewed {
		return procurement.Renewed{Err: procurement.Refuse(c, reason)}
	}
	for _, c := range []struct {
		claim    string
		list     []procurement.Renewed
		quantity int
		end      time.Time
		class    procurement.Class // empty: no error
		reason   string
	}{
		{"all addresses are renewed", []procurement.Renewed{renewed(late)}, 1, late, "", ""},
		{"the earliest end counts if it comes first", []procurement.Renewed{renewed(early), renewed(late)}, 2, early, "", ""},
		{"the earliest end counts if it comes last", []procurement.Renewed{renewed(late), renewed(early)}, 2, early, "", ""},

		{"all are refused", []procurement.Renewed{failed(procurement.InsufficientFunds, "too poor"),
			failed(procurement.InsufficientFunds, "too poor")},
			2, time.Time{}, procurement.InsufficientFunds, "too poor"},
		{"the last refusal counts", []procurement.Renewed{failed(procurement.InsufficientFunds, "too poor"),
			failed(procurement.OutOfStock, "none left")},
			2, time.Time{}, procurement.OutOfStock, "none left"},

		{"some are renewed and some refused", []procurement.Renewed{renewed(late), failed(procurement.InsufficientFunds,
			"too poor")},
			2, late, procurement.Ambiguous, "1 of 2 addresses are renewed: too poor"},
		{"some are renewed and the others not listed", []procurement.Renewed{renewed(late)},
			2, late, procurement.Ambiguous, "1 of 2 addresses are renewed: "},
		{"more are renewed than were ordered", []procurement.Renewed{renewed(late), renewed(early)},
			1, early, procurement.Ambiguous, "2 of 1 addresses are renewed: "},
		{"none is listed", nil, 2, time.Time{}, procurement.Ambiguous, "0 of 2 addresses are renewed: "},

		{"one may be renewed, a later one is refused", []procurement.Renewed{failed(procurement.Ambiguous, "no answer came"),
			failed(procurement.InsufficientFunds, "too poor")},
			2, time.Time{}, procurement.Ambiguous, "0 of 2 addresses are renewed: no answer came"},
		{"one is refused, a later one may be renewed",
			[]procurement.Renewed{failed(procurement.InsufficientFunds, "too poor"),
				failed(procurement.Ambiguous, "no answer came")},
			2, time.Time{}, procurement.Ambiguous, "0 of 2 addresses are renewed: no answer came"},
		{"an error without a class may be a renewal", []procurement.Renewed{{Err: errors.New("connection reset")}},
			1, time.Time{}, procurement.Ambiguous, "0 of 1 addresses are renewed: " +
				procurement.ReasonOf(errors.New("connection reset"))},
	} {
		t.Run(c.claim, func(t *testing.T) {
			end, err := procurement.CheckRenewed(c.list, c.quantity)
			if !end.Equal(c.end) {
				t.Errorf("the end is %s, want %s", end, c.end)
			}
			if c.class == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := (*procurement.Error)(nil); !errors.As(err, &e) || procurement.ClassOf(err) != c.class ||
				procurement.ReasonOf(err) != c.reason {
				t.Errorf("got %v, want %s %q", err, c.class, c.reason)
			}
		})
	}
}

func TestDecideRenewal(t *testing.T) {
	a, b, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.9")
	before, after := sentAt.AddDate(0, 0, 3), sentAt.AddDate(0, 0, 33)
	ends := func(addr netip.Addr, at time.Time) procurement.IP { return procurement.IP{Addr: addr, ExpiresAt: at} }
	live := func(ips ...procurement.IP) procurement.Delivery {
		return procurement.Delivery{State: procurement.Live, IPs: ips}
	}
	have := func(m domain.Money) procurement.Evidence {
		return procurement.Evidence{Funds: procurement.ProviderBalance{Amount: m, Known: true}}
	}
	in := func(state procurement.State, d procurement.Delivery) procurement.Delivery {
		d.State = state
		return d
	}
	const settled, funds = procurement.RenewalSettleFor, 10 * domain.Dollar
	unchanged := live(ends(a, before), ends(b, before))
	for _, c := range []struct {
		claim    string
		delivery procurement.Delivery
		evidence procurement.Evidence
		age      time.Duration
		want     procurement.Verdict
		reason   string
	}{
		{"all end later", live(ends(a, after), ends(b, after)), have(0), 0, procurement.Adopt, ""},
		{"all end later by half of the days", live(ends(a, before.Add(15*session.Day)), ends(b, after)), have(0), 0,
			procurement.Adopt, ""},
		{"all end otherwise, one of them earlier", live(ends(a, after), ends(b, before.Add(-time.Hour))), have(0), settled,
			procurement.Wait, "1 of 2 addresses are renewed"},
		{"all end earlier", live(ends(a, before.Add(-time.Hour)), ends(b, before.Add(-time.Hour))), have(funds), settled,
			procurement.Wait, "0 of 2 addresses are renewed"},
		{"all end a second later", live(ends(a, before.Add(time.Second)), ends(b, before.Add(time.Second))), have(funds),
			settled, procurement.Wait, "0 of 2 addresses are renewed"},
		{"all end later by less than half of the days", live(ends(a, before.Add(15*session.Day-time.Second)),
			ends(b, before.Add(15*session.Day-time.Second))), have(funds), settled, procurement.Wait,
			"0 of 2 addresses are renewed"},
		{"the order's end is that of its addresses", procurement.Delivery{State: procurement.Live, ExpiresAt: after,
			IPs: []procurement.IP{{Addr: a}, {Addr: b}}},
			have(0), 0, procurement.Adopt, ""},
		{"the only address that was not exchanged ends later", live(ends(a, after), ends(other, before)), have(0), 0,
			procurement.Adopt, ""},
		{"all end later at an order that is over", in(procurement.Gone, live(ends(a, after), ends(b, after))), have(0), 0,
			procurement.Adopt, ""},

		{"none is renewed and no money is missing", unchanged, have(funds), settled, procurement.Absent,
			"the addresses end as before"},
		{"a fraction of a second is no renewal", live(ends(a, before.Add(time.Second-1)), ends(b, before)), have(funds),
			settled,
			procurement.Absent, "the addresses end as before"},
		{"the only address that was not exchanged ends as before", live(ends(a, before), ends(other, after)), have(funds),
			settled,
			procurement.Absent, "the addresses end as before"},
		{"what is missing was spent on other orders", unchanged,
			procurement.Evidence{Funds: procurement.ProviderBalance{Amount: funds - 3, Known: true}, Spent: 3},
			settled, procurement.Absent, "the addresses end as before"},
		{"the balance is unknown now", unchanged, procurement.Evidence{}, settled, procurement.Absent,
			"the addresses end as before"},

		{"none is renewed so far", unchanged, have(funds), settled - 1, procurement.Wait, "0 of 2 addresses are renewed"},
		{"none is renewed and money is missing", unchanged, have(funds - 1), settled, procurement.Wait,
			"0 of 2 addresses are renewed"},
		{"other orders cost less than is missing", unchanged,
			procurement.Evidence{Funds: procurement.ProviderBalance{Amount: funds - 3, Known: true}, Spent: 2},
			settled, procurement.Wait, "0 of 2 addresses are renewed"},
		{"none is renewed at an order in preparation", in(procurement.Pending, unchanged), have(funds), settled,
			procurement.Wait, "0 of 2 addresses are renewed"},
		{"none is renewed at an order that is over", in(procurement.Gone, unchanged), have(funds), settled, procurement.Wait,
			"0 of 2 addresses are renewed"},
		{"one of two is renewed", live(ends(a, after), ends(b, before)), have(funds), settled, procurement.Wait,
			"1 of 2 addresses are renewed"},
		{"all were exchanged", live(ends(other, after)), have(funds), settled, procurement.Wait,
			"0 of 0 addresses are renewed"},
		{"no address is listed", live(), have(funds), settled, procurement.Wait, "0 of 0 addresses are renewed"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			o := orderAt(procurement.Unknown)
			o.Intent.Days = 30
			o.Before = procurement.Snapshot{Ends: map[netip.Addr]time.Time{a: before, b: before},
				Funds: procurement.ProviderBalance{Amount: funds, Known: true}}
			verdict, reason := procurement.DecideRenewal(o, c.delivery, c.evidence, sentAt.Add(c.age))
			if verdict != c.want || reason != c.reason {
				t.Errorf("%s %q, want %s %q", verdict, reason, c.want, c.reason)
			}
		})
	}
	t.Run("the balance before the order is unknown", func(t *testing.T) {
		o := orderAt(procurement.Unknown)
		o.Before.Ends = map[netip.Addr]time.Time{a: before, b: before}
		if v, _ := procurement.DecideRenewal(o, unchanged, have(0), sentAt.Add(settled)); v != procurement.Absent {
			t.Errorf("got %s, want %s", v, procurement.Absent)
		}
	})
}
