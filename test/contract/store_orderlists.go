package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

var orderListClaims = []claim{
	{"the orders of a session are listed newest first", upstreamOfSession},
	{"of a session that was renewed often the purchase is listed", upstreamOfLongSession},
	{"upstream orders are listed newest first, by status and provider, page by page", upstreamLists},
	{"the orders that are due are listed, the longest first", upstreamDue},
	{"rivals are the other orders of a provider whose outcome is still to come", upstreamRivals},
	{"refs are known of every order of their provider", upstreamKnown},
	{"spent is what was sent to a provider since, and confirmed", upstreamSpent},
	{"open and frozen orders are counted", upstreamTally},
	{"what a provider owes is counted", upstreamOwed},
	{"the last reconciliation of each provider is kept", reconciliationsKept},
}

func wantUpstreamList(
	t testing.TB, st ports.Store, f ports.OrderFilter, page domain.Page, total int, want ...procurement.Order,
) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Orders().List(ctx, f, page)
		sameList(t, fmt.Sprintf("%+v %v", f, page), want, got.Items, err)
		if got.Total != total || got.Page != page {
			t.Errorf("%+v: total %d, want %d; page %v", f, got.Total, total, got.Page)
		}
		return nil
	})
}

func upstreamOfSession(t *testing.T, st ports.Store) {
	refused, bought := upstreamOrder(1, "one"), upstreamOrder(2, "two")
	refused.Status, refused.SessionID, refused.Intent.SessionID = procurement.Refused, "sess_2", "sess_2"
	bought = confirmed(bought, "R/1")
	renewed := confirmed(renewalOf(bought, 4), "R/1")
	renewed.SealedDelivery = nil
	addUpstream(t, st, refused, bought, upstreamOrder(3, "two"), renewed)
	for name, unit := range map[string]func(context.Context, unit) error{"look": st.Read, "update": bare(st.Update)} {
		for sessionID, want := range map[string][]procurement.Order{"sess_2": {renewed, bought, refused},
			"sess_3": {upstreamOrder(3, "two")}, "sess_1": nil, "": nil} {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.Orders().Of(ctx, sessionID)
				sameList(t, name+" "+sessionID, want, list, err)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func upstreamOfLongSession(t *testing.T, st ports.Store) {
	bought := confirmed(upstreamOrder(0, "one"), "R/1")
	all := []procurement.Order{bought}
	for n := 1; n <= 101; n++ {
		all = append(all, renewalOf(bought, n))
	}
	addUpstream(t, st, all...)
	want := append(slices.Clone(all[2:]), bought)
	slices.Reverse(want[:100])
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Orders().Of(ctx, bought.SessionID)
		sameList(t, "100 renewals and the purchase", want, list, err)
		return nil
	})
}

func upstreamLists(t *testing.T, st ports.Store) {
	o := make([]procurement.Order, 6)
	for i, c := range []struct {
		provider string
		status   procurement.Status
		frozen   bool
	}{{"one", procurement.Unknown, true}, {"two", procurement.Unknown, false}, {"one", procurement.Confirmed, false},
		{"two", procurement.Unknown, true}, {"one", procurement.Planned, false}, {"one", procurement.Refused, false}} {
		o[i] = as(upstreamOrder(9-i, c.provider), c.status) // by insertion, whatever their ids
		if c.frozen {
			o[i].FrozenAt = storeNow
		}
	}
	addUpstream(t, st, o...)
	all := domain.Page{Number: 1, Size: 20}
	wantUpstreamList(t, st, ports.OrderFilter{}, all, 6, o[5], o[4], o[3], o[2], o[1], o[0])
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 2, Size: 4}, 6, o[1], o[0])
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 3, Size: 3}, 6)
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 1 << 62, Size: 100}, 6)
	wantUpstreamList(t, st, ports.OrderFilter{Status: procurement.Unknown}, all, 3, o[3], o[1], o[0])
	wantUpstreamList(t, st, ports.OrderFilter{Status: procurement.Unknown}, domain.Page{Number: 2, Size: 1}, 3, o[1])
	wantUpstreamList(t, st, ports.OrderFilter{Status: procurement.Sent}, all, 0)
	wantUpstreamList(t, st, ports.OrderFilter{Provider: "one"}, all, 4, o[5], o[4], o[2], o[0])
	wantUpstreamList(t, st, ports.OrderFilter{Provider: "one", Status: procurement.Unknown}, all, 1, o[0])
	wantUpstreamList(t, st, ports.OrderFilter{Provider: "ONE"}, all, 0)
	wantUpstreamList(t, st, ports.OrderFilter{Frozen: true}, all, 2, o[3], o[0])
	wantUpstreamList(t, st, ports.OrderFilter{Frozen: true, Provider: "two"}, all, 1, o[3])
	wantUpstreamList(t, st, ports.OrderFilter{Frozen: true, Status: procurement.Unknown, Provider: "one"}, domain.Page{Number: 1, Size: 1}, 1, o[0])
	wantUpstreamList(t, st, ports.OrderFilter{Frozen: true, Status: procurement.Confirmed}, all, 0)
}

func upstreamDue(t *testing.T, st ports.Store) {
	for n, after := range []time.Duration{3 * time.Second, time.Second, 0, 2 * time.Second, time.Second} {
		o := as(upstreamOrder(n, "one"), []procurement.Status{procurement.Unknown, procurement.Planned, procurement.Sent, procurement.Confirmed, procurement.Sent}[n])
		if after > 0 {
			o.NextAt = storeNow.Add(after)
		}
		addUpstream(t, st, o)
	}
	due := func(now time.Time, limit int, want ...string) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			var list []string
			orders, err := tx.Orders().Due(ctx, now, limit)
			for _, o := range orders {
				list = append(list, o.OrderID)
			}
			sameList(t, fmt.Sprint(now, limit), want, list, err)
			return nil
		})
	}
	due(storeNow.Add(time.Second-time.Microsecond), 10)
	due(storeNow.Add(time.Second), 10, "ord_1", "ord_4")
	due(storeNow.Add(time.Hour), 10, "ord_1", "ord_4", "ord_3", "ord_0")
	due(storeNow.Add(time.Hour), 3, "ord_1", "ord_4", "ord_3")
	due(storeNow.Add(time.Hour), 0)
	late := as(upstreamOrder(5, "two"), procurement.Planned)
	late.NextAt = storeNow.Add(time.Minute)
	addUpstream(t, st, late) // it is not held up by the many of another provider
	due(storeNow.Add(time.Hour), 2, "ord_1", "ord_5", "ord_4")
}

func upstreamRivals(t *testing.T, st ports.Store) {
	at := func(n int, provider, sku, country string, status procurement.Status) procurement.Order {
		o := as(upstreamOrder(n, provider), status)
		o.Intent.SKU, o.Intent.Location.Country = sku, country
		return o
	}
	frozen := at(11, "one", "isp-1", "DE", procurement.Unknown)
	frozen.FrozenAt = storeNow
	addUpstream(t, st, frozen,
		at(1, "one", "isp-1", "DE", procurement.Sent), at(2, "one", "isp-1", "DE", procurement.Unknown),
		at(3, "one", "isp-2", "DE", procurement.Sent), at(4, "one", "isp-1", "US", procurement.Unknown),
		at(5, "one", "isp-1", "", procurement.Sent), at(6, "one", "", "DE", procurement.Unknown),
		at(7, "one", "isp-1", "DE", procurement.Planned), at(8, "one", "isp-1", "DE", procurement.Confirmed),
		at(9, "one", "isp-1", "DE", procurement.Refused), at(10, "two", "isp-1", "DE", procurement.Sent))
	for _, c := range []struct {
		o          procurement.Order
		open, like int
	}{
		{at(1, "one", "isp-1", "DE", procurement.Sent), 5, 3}, {at(99, "one", "isp-1", "DE", procurement.Planned), 6, 4},
		{at(99, "one", "isp-2", "US", procurement.Planned), 6, 0}, {at(99, "one", "isp-1", "", procurement.Planned), 6, 5},
		{at(99, "one", "", "US", procurement.Planned), 6, 2}, {at(99, "one", "", "", procurement.Planned), 6, 6},
		{at(10, "two", "isp-1", "DE", procurement.Sent), 0, 0}, {at(99, "two", "isp-1", "DE", procurement.Planned), 1, 1},
		{at(99, "three", "isp-1", "DE", procurement.Planned), 0, 0},
	} {
		for name, unit := range map[string]func(context.Context, unit) error{"view": bare(st.View), "update": bare(st.Update)} {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				open, like, err := tx.Orders().CountOpen(ctx, c.o)
				if open != c.open || like != c.like {
					t.Errorf("%s: %s of %s for %q in %q has %d rivals, %d like it; want %d, %d", name, c.o.ID, c.o.Provider,
						c.o.Intent.SKU, c.o.Intent.Location.Country, open, like, c.open, c.like)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func upstreamKnown(t *testing.T, st ports.Store) {
	want, refs := map[string]bool{}, []string{"", "R/none", "r/1"}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for n := range 600 {
			o := confirmed(upstreamOrder(n, "one"), fmt.Sprint("R/", n))
			switch {
			case n < 3:
				o.Status = []procurement.Status{procurement.Unknown, procurement.Refused, procurement.Sent}[n]
			case n%2 > 0:
				o.Provider = "two"
			}
			if n < 3 || n%2 == 0 {
				want[o.Ref] = true
			}
			refs = append(refs, o.Ref)
			if err := tx.Orders().Insert(ctx, o); err != nil {
				return err
			}
		}
		return tx.Orders().Insert(ctx, upstreamOrder(600, "one")) // has no ref
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Orders().Known(ctx, "one", append(refs, refs...))
		if err != nil || !maps.Equal(want, got) {
			t.Errorf("%d refs are known, want %d; %v", len(got), len(want), err)
		}
		for _, none := range [][]string{nil, {}, {""}, {"R/none"}, {"R/3"}} {
			if got, err := tx.Orders().Known(ctx, "one", none); len(got) > 0 || got == nil || err != nil {
				t.Errorf("of %q %v are known, %v", none, got, err)
			}
		}
		return nil
	})
}

func upstreamSpent(t *testing.T, st ports.Store) {
	for n, c := range []struct {
		provider string
		status   procurement.Status
		cost     domain.Money
	}{{"one", procurement.Confirmed, 1}, {"one", procurement.Confirmed, 10}, {"one", procurement.Refused, 100}, {"two", procurement.Confirmed, 1000},
		{"one", procurement.Unknown, 10_000}, {"one", procurement.Confirmed, 1 << 40}} {
		o := as(upstreamOrder(n, c.provider), c.status)
		o.Cost, o.SentAt, o.DecidedAt = c.cost, storeNow.Add(time.Duration(n)*time.Second), storeNow.Add(time.Hour)
		addUpstream(t, st, o)
	}
	for _, c := range []struct {
		provider string
		since    time.Time
		want     domain.Money
	}{{"one", storeNow, 11 + 1<<40}, {"one", time.Time{}, 11 + 1<<40}, {"one", storeNow.Add(time.Microsecond), 10 + 1<<40},
		{"one", storeNow.Add(time.Second), 10 + 1<<40}, {"one", storeNow.Add(6 * time.Second), 0}, {"two", storeNow, 1000},
		{"three", storeNow, 0}} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Orders().Spent(ctx, c.provider, c.since)
			if got != c.want || err != nil {
				t.Errorf("at %s since %v: %d, want %d; %v", c.provider, c.since, got, c.want, err)
			}
			return nil
		})
	}
}

func upstreamTally(t *testing.T, st ports.Store) {
	want := func(open, frozen int) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			gotOpen, gotFrozen, err := tx.Orders().Tally(ctx)
			if gotOpen != open || gotFrozen != frozen || err != nil {
				t.Errorf("%d open and %d frozen, want %d and %d; %v", gotOpen, gotFrozen, open, frozen, err)
			}
			return nil
		})
	}
	want(0, 0)
	for n, status := range []procurement.Status{procurement.Planned, procurement.Sent, procurement.Confirmed, procurement.Refused, procurement.Unknown} {
		addUpstream(t, st, as(upstreamOrder(n, fmt.Sprint("provider ", n)), status))
	}
	want(3, 0)
	frozen := as(upstreamOrder(4, "provider 4"), procurement.Unknown)
	frozen.FrozenAt = storeNow
	if err := putUpstream(t, st, frozen); err != nil {
		t.Fatal(err)
	}
	want(3, 1)
}

func upstreamOwed(t *testing.T, st ports.Store) {
	want := func(want map[string]procurement.Owed) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Orders().Owed(ctx)
			if !maps.Equal(got, want) || err != nil {
				t.Errorf("owed are %v, want %v; %v", got, want, err)
			}
			return nil
		})
	}
	want(map[string]procurement.Owed{})
	owed := func(n int, provider string, change func(*procurement.Order)) procurement.Order {
		o := as(upstreamOrder(n, provider), procurement.Confirmed)
		o.Ref = fmt.Sprint("ref", n)
		change(&o)
		return o
	}
	lost := func(o *procurement.Order) { o.LostAt = storeNow }
	addUpstream(t, st, owed(1, "one", func(*procurement.Order) {}), owed(2, "one", lost), owed(3, "two", lost),
		owed(7, "two", func(o *procurement.Order) { o.FrozenAt = storeNow }),
		owed(4, "one", func(o *procurement.Order) { lost(o); o.ClosedAt = storeNow }),
		owed(5, "one", func(o *procurement.Order) { o.Kind = procurement.Renewal }),
		owed(6, "three", func(o *procurement.Order) { o.Status = procurement.Unknown }))
	want(map[string]procurement.Owed{"one": {Live: 2, Missing: 1}, "two": {Live: 2, Missing: 1, Late: 1}})
	if err := putUpstream(t, st, owed(2, "one", func(*procurement.Order) {})); err != nil {
		t.Fatal(err)
	}
	want(map[string]procurement.Owed{"one": {Live: 2}, "two": {Live: 2, Missing: 1, Late: 1}})
}

func reconciliationsKept(t *testing.T, st ports.Store) {
	one := ports.Reconciliation{Provider: "one", At: storeNow, Listed: 7, Orphans: 2}
	two := ports.Reconciliation{Provider: "two", At: storeNow.Add(time.Hour)}
	again := ports.Reconciliation{Provider: "one", At: storeNow.Add(24 * time.Hour), Listed: 6}
	want := map[string]ports.Reconciliation{}
	for _, r := range []ports.Reconciliation{{}, one, two, again} {
		if r.Provider != "" {
			update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Reconciliations().Put(ctx, r) })
			want[r.Provider] = r
		}
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Reconciliations().All(ctx)
			if !maps.Equal(got, want) || err != nil {
				t.Errorf("they are %+v, want %+v; %v", got, want, err)
			}
			return nil
		})
	}
}
