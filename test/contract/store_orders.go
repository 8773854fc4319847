package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/supply"
	"agentproxy/ports"
)

var orderClaims = []claim{
	{"an upstream order is read back as it was inserted", upstreamRoundTrip},
	{"an upstream order is inserted once, with an intent of its own", upstreamInsertedOnce},
	{"put of an upstream order changes all but whose it is and what was asked for", upstreamPut},
	{"put of an unknown upstream order is refused", upstreamPutUnknown},
	{"put of an upstream order notes a change of its session", upstreamChangesNoted},
	{"an upstream order follows its unit", upstreamFollowsItsUnit},
	{"a ref is of one purchase of a provider", refsAreAdoptedOnce},
	{"of twenty purchases that adopt a ref one has it", oneAdoption},
	{"an order is found by its ref once it is confirmed, before its renewals", ordersByRef},
	{"of twenty that decide an order one does", oneDecision},
	{"of twenty orders of a provider that ask for rivals one is sent", oneIsSent},
}

// upstreamOrder is a planned order of a session of its own.
func upstreamOrder(n int, provider string) supply.Order {
	id, sessionID := fmt.Sprintf("ord_%d", n), fmt.Sprintf("sess_%d", n)
	return supply.Order{
		ID: id, Kind: supply.Purchase, SessionID: sessionID, Provider: provider, Status: supply.Planned,
		Intent: supply.Intent{Key: id, SessionID: sessionID, Type: session.Static, SKU: "isp-1",
			Location: session.Location{Country: "DE", City: "berlin"}, Quantity: 2, Days: 30, Bytes: 1 << 40, MaxCost: 9_000_001},
		PlannedAt: storeNow.Add(time.Duration(n) * time.Minute),
	}
}

// renewalOf is a planned renewal of what an order bought.
func renewalOf(o supply.Order, n int) supply.Order {
	r := upstreamOrder(n, o.Provider)
	r.Kind, r.SessionID, r.Intent.SessionID = supply.Renewal, o.SessionID, o.SessionID
	return r
}

// confirmed is an order as the provider made it.
func confirmed(o supply.Order, ref string) supply.Order {
	o.Status, o.Ref, o.State, o.Goods = supply.Confirmed, ref, supply.Live, []byte("sealed")
	o.SentAt, o.DecidedAt = o.PlannedAt.Add(time.Second), o.PlannedAt.Add(2*time.Second)
	return o
}

// as is an order of a status that is not confirmed.
func as(o supply.Order, status supply.Status) supply.Order {
	o.Status = status
	return o
}

func addUpstream(t testing.TB, st ports.Store, list ...supply.Order) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, o := range list {
			if err := tx.Orders().Insert(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
}

func putUpstream(t testing.TB, st ports.Store, o supply.Order) error {
	t.Helper()
	return st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error { return tx.Orders().Put(ctx, o) })
}

// wantUpstream reads orders in every kind of unit.
func wantUpstream(t testing.TB, st ports.Store, want ...supply.Order) {
	t.Helper()
	for name, unit := range map[string]func(context.Context, unit) error{"view": st.View, "look": st.Look, "update": st.Update} {
		for _, o := range want {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				got, err := tx.Orders().Get(ctx, o.ID)
				if diff := cmp.Diff(o, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func upstreamRoundTrip(t *testing.T, st ports.Store) {
	full := upstreamOrder(1, "one")
	for i, at := range []*time.Time{&full.SentAt, &full.DecidedAt, &full.NextAt, &full.FrozenAt, &full.LostAt, &full.ClosedAt,
		&full.ExpiresAt} {
		*at = storeNow.Add(time.Duration(i+1) * time.Hour)
	}
	full.Status, full.State, full.Class = supply.Unknown, supply.Pending, supply.Ambiguous
	full.Before = supply.Snapshot{Refs: []string{"a", `"é"' <,>`, ""}, Funds: supply.Funds{Amount: -7, Known: true}}
	full.Ref, full.Goods, full.Cost, full.Reason = "R/1", []byte{0, 1, 255}, 8_123_456, "no answer; é\u2028'\\"
	taken := upstreamOrder(2, "two")
	taken.Intent.Taken = map[string]bool{"127.0.0.2": true}
	none := supply.Order{ID: "ord_3", Intent: supply.Intent{Key: "ord_3"}, Before: supply.Snapshot{Refs: []string{}}}
	addUpstream(t, st, full, taken, none)
	taken.Intent.Taken = nil
	wantUpstream(t, st, full, taken, none)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, id := range []string{"ord_4", "", "ORD_1"} {
			if _, err := tx.Orders().Get(ctx, id); !errors.Is(err, supply.ErrOrderNotFound) {
				t.Errorf("order %q: %v", id, err)
			}
		}
		return nil
	})
}

func upstreamInsertedOnce(t *testing.T, st ports.Store) {
	first := upstreamOrder(1, "one")
	addUpstream(t, st, first)
	again, key, owner := upstreamOrder(1, "two"), upstreamOrder(2, "one"), upstreamOrder(3, "one")
	key.Intent.Key, owner.Intent.SessionID = "ord_1", "sess_1"
	for _, o := range []supply.Order{again, key, owner} {
		err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error { return tx.Orders().Insert(ctx, o) })
		if err == nil {
			t.Errorf("order %s of %s with key %s was inserted", o.ID, o.Intent.SessionID, o.Intent.Key)
		}
	}
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 1, Size: 20}, 1, first)
}

func upstreamPut(t *testing.T, st ports.Store) {
	first, other := upstreamOrder(1, "one"), upstreamOrder(2, "one")
	addUpstream(t, st, first, other)
	want := first
	want.Status, want.Ref, want.State = supply.Confirmed, "R/1", supply.Gone
	want.Before = supply.Snapshot{Refs: []string{"x"}, Funds: supply.Funds{Amount: 5, Known: true}}
	want.Goods, want.Cost, want.Class, want.Reason = []byte("sealed"), 3, supply.Conflict, "why"
	for i, at := range []*time.Time{&want.SentAt, &want.DecidedAt, &want.NextAt, &want.FrozenAt, &want.LostAt, &want.ClosedAt,
		&want.ExpiresAt} {
		*at = storeNow.Add(time.Duration(i+1) * time.Hour)
	}
	put := want
	put.Kind, put.SessionID, put.Provider, put.PlannedAt = supply.Renewal, "sess_9", "two", storeNow.Add(-time.Hour)
	put.Intent = supply.Intent{Key: "ord_9", SessionID: "sess_9", Type: session.Dynamic, SKU: "other",
		Location: session.Location{Country: "US", City: "boston"}, Quantity: 9, Days: 9, Bytes: 9, MaxCost: 9}
	for _, o := range []supply.Order{put, first} { // there and back
		if err := putUpstream(t, st, o); err != nil {
			t.Fatal(err)
		}
		wantUpstream(t, st, want, other)
		want = first
	}
}

func upstreamPutUnknown(t *testing.T, st ports.Store) {
	addUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1"))
	for _, o := range []supply.Order{upstreamOrder(2, "one"), confirmed(upstreamOrder(2, "one"), "R/1")} {
		if err := putUpstream(t, st, o); !errors.Is(err, supply.ErrOrderNotFound) {
			t.Errorf("a %s one: %v", o.Status, err)
		}
	}
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 1, Size: 20}, 1, confirmed(upstreamOrder(1, "one"), "R/1"))
}

func upstreamChangesNoted(t *testing.T, st ports.Store) {
	start := lastChange(t, st)
	orphan := upstreamOrder(2, "one")
	orphan.SessionID, orphan.Intent.SessionID = "", ""
	addUpstream(t, st, upstreamOrder(1, "one"), orphan)
	other := as(upstreamOrder(1, "one"), supply.Sent)
	other.SessionID = "sess_9" // not whose it is
	orphan.SessionID = "sess_9"
	for _, o := range []supply.Order{orphan, other} {
		if err := putUpstream(t, st, o); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := changesSince(t, st, start, 10)
	if diff := cmp.Diff([]ports.Change{{Session: "sess_1"}}, list); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func upstreamFollowsItsUnit(t *testing.T, st ports.Store) {
	addUpstream(t, st, upstreamOrder(1, "one"))
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Orders().Insert(ctx, upstreamOrder(2, "one")),
			tx.Orders().Put(ctx, as(upstreamOrder(1, "one"), supply.Sent)), errUnit)
	})
	if !errors.Is(err, errUnit) {
		t.Fatal(err)
	}
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 1, Size: 20}, 1, upstreamOrder(1, "one"))
}

func refsAreAdoptedOnce(t *testing.T, st ports.Store) {
	first := upstreamOrder(1, "one")
	addUpstream(t, st, first, upstreamOrder(2, "one"), upstreamOrder(3, "two"), renewalOf(first, 4), renewalOf(first, 5),
		upstreamOrder(6, "one"), upstreamOrder(7, "one"))
	unknown, refused, planned := confirmed(upstreamOrder(2, "one"), "R/1"), confirmed(upstreamOrder(2, "one"), "R/1"), upstreamOrder(2, "one")
	unknown.Status, refused.Status = supply.Unknown, supply.Refused
	for _, c := range []struct {
		name string
		put  supply.Order
		want error
	}{
		{"the first", confirmed(first, "R/1"), nil},
		{"again", confirmed(first, "R/1"), nil},
		{"another order", confirmed(upstreamOrder(2, "one"), "R/1"), ports.ErrDuplicate},
		{"another order that is unknown", unknown, nil},
		{"another order that is refused", refused, nil},
		{"another ref", confirmed(upstreamOrder(2, "one"), "r/1"), nil},
		{"another provider's", confirmed(upstreamOrder(3, "two"), "R/1"), nil},
		{"a renewal", confirmed(renewalOf(first, 4), "R/1"), nil},
		{"a second renewal", confirmed(renewalOf(first, 5), "R/1"), nil},
		{"no ref", confirmed(upstreamOrder(6, "one"), ""), nil},
		{"no ref either", confirmed(upstreamOrder(7, "one"), ""), nil},
		{"another order once more", confirmed(upstreamOrder(2, "one"), "R/1"), ports.ErrDuplicate},
		{"the first gives it up", as(first, supply.Refused), nil},
		{"a purchase beside renewals", confirmed(upstreamOrder(2, "one"), "R/1"), nil},
		{"the first wants it back", confirmed(first, "R/1"), ports.ErrDuplicate},
		{"given up again", planned, nil},
	} {
		if err := putUpstream(t, st, c.put); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	// A unit that is refused may go on.
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Orders().Put(ctx, confirmed(first, "r/2")); err != nil {
			return err
		}
		if err := tx.Orders().Put(ctx, confirmed(planned, "r/2")); !errors.Is(err, ports.ErrDuplicate) {
			t.Errorf("inside one unit: %v", err)
		}
		return tx.Orders().Put(ctx, as(planned, supply.Sent))
	})
	wantUpstream(t, st, confirmed(first, "r/2"), as(planned, supply.Sent))
}

// twenty runs a unit for each of the numbers 1 to 20 at once, and returns how many
// returned nil. The others have to return the error.
func twenty(t *testing.T, st ports.Store, refused error, run func(ctx context.Context, tx ports.Tx, n int) error) int {
	var won atomic.Int32
	var wg sync.WaitGroup
	for n := 1; n <= 20; n++ {
		wg.Go(func() {
			err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error { return run(ctx, tx, n) })
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, refused):
				t.Errorf("unit %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	return int(won.Load())
}

func oneAdoption(t *testing.T, st ports.Store) {
	for n := 1; n <= 20; n++ {
		addUpstream(t, st, upstreamOrder(n, "one"))
	}
	won := twenty(t, st, ports.ErrDuplicate, func(ctx context.Context, tx ports.Tx, n int) error {
		err := tx.Orders().Put(ctx, confirmed(upstreamOrder(n, "one"), "R/1"))
		time.Sleep(5 * time.Millisecond)
		return err
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Orders().List(ctx, ports.OrderFilter{Status: supply.Confirmed}, domain.Page{Number: 1, Size: 20})
		if won != 1 || list.Total != 1 {
			t.Errorf("%d orders adopted the ref and %d have it, want 1", won, list.Total)
		}
		return err
	})
}

func ordersByRef(t *testing.T, st ports.Store) {
	first := upstreamOrder(3, "one")
	renewed := confirmed(renewalOf(first, 4), "R/2")
	addUpstream(t, st, confirmed(renewalOf(first, 1), "R/1"), confirmed(renewalOf(first, 2), "R/1"), first, renewed,
		upstreamOrder(5, "one"), confirmed(upstreamOrder(6, "two"), "R/6"))
	find := func(provider, ref, want string) {
		t.Helper()
		for name, unit := range map[string]func(context.Context, unit) error{"look": st.Look, "update": st.Update} {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				got, err := tx.Orders().ByRef(ctx, provider, ref)
				if got.ID != want {
					t.Errorf("%s: %s of %s is %q, want %q", name, ref, provider, got.ID, want)
				}
				return err
			})
			if (want == "") != errors.Is(err, supply.ErrOrderNotFound) || want != "" && err != nil {
				t.Errorf("%s: %s of %s: %v", name, ref, provider, err)
			}
		}
	}
	find("one", "R/1", "ord_2") // of renewals the last
	for _, status := range []supply.Status{supply.Unknown, supply.Refused, supply.Sent, supply.Planned} {
		o := confirmed(first, "R/1")
		if err := putUpstream(t, st, as(o, status)); err != nil {
			t.Fatal(err)
		}
		find("one", "R/1", "ord_2")
	}
	if err := putUpstream(t, st, confirmed(first, "R/1")); err != nil {
		t.Fatal(err)
	}
	find("one", "R/1", "ord_3")
	find("one", "R/2", "ord_4")
	find("two", "R/6", "ord_6")
	for _, c := range [][2]string{{"two", "R/1"}, {"one", "r/1"}, {"one", ""}, {"one", "R/6"}, {"", "R/1"}} {
		find(c[0], c[1], "")
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Orders().ByRef(ctx, "one", "R/2")
		if diff := cmp.Diff(renewed, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

// oneDecision reads an order in every way, each of which keeps others from it.
func oneDecision(t *testing.T, st ports.Store) {
	reads := map[string]func(context.Context, ports.Orders) (supply.Order, error){
		"by id": func(ctx context.Context, orders ports.Orders) (supply.Order, error) { return orders.Get(ctx, "ord_1") },
		"by ref": func(ctx context.Context, orders ports.Orders) (supply.Order, error) {
			return orders.ByRef(ctx, "one", "R/1")
		},
		"of the session": func(ctx context.Context, orders ports.Orders) (supply.Order, error) {
			return only(orders.Of(ctx, "sess_1"))
		},
		"listed": func(ctx context.Context, orders ports.Orders) (supply.Order, error) {
			list, err := orders.List(ctx, ports.OrderFilter{}, domain.Page{Number: 1, Size: 1})
			return only(list.Items, err)
		},
	}
	addUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1"))
	for name, read := range reads {
		if err := putUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1")); err != nil {
			t.Fatal(err)
		}
		won := twenty(t, st, supply.ErrDecided, func(ctx context.Context, tx ports.Tx, _ int) error {
			o, err := read(ctx, tx.Orders())
			if err != nil {
				return err
			}
			if !o.ClosedAt.IsZero() {
				return supply.ErrDecided
			}
			time.Sleep(5 * time.Millisecond)
			o.ClosedAt = storeNow
			return tx.Orders().Put(ctx, o)
		})
		if won != 1 {
			t.Errorf("%s: %d closed the order, want 1", name, won)
		}
	}
}

func only(list []supply.Order, err error) (supply.Order, error) {
	if err != nil || len(list) != 1 {
		return supply.Order{}, errors.Join(err, fmt.Errorf("there are %d orders", len(list)))
	}
	return list[0], nil
}

func oneIsSent(t *testing.T, st ports.Store) {
	for n := range 40 {
		addUpstream(t, st, upstreamOrder(n, fmt.Sprint("provider ", n%2)))
	}
	send := func(ctx context.Context, tx ports.Tx, n int) error {
		o, err := tx.Orders().Get(ctx, fmt.Sprint("ord_", n))
		if err != nil {
			return err
		}
		open, _, err := tx.Orders().Rivals(ctx, o)
		if err != nil {
			return err
		}
		if open > 0 {
			return supply.ErrDecided
		}
		time.Sleep(5 * time.Millisecond)
		if o, err = o.Send(supply.Snapshot{}, storeNow); err != nil {
			return err
		}
		return tx.Orders().Put(ctx, o)
	}
	var won [2]int
	var wg sync.WaitGroup
	for p := range won {
		wg.Go(func() {
			won[p] = twenty(t, st, supply.ErrDecided, func(ctx context.Context, tx ports.Tx, n int) error {
				return send(ctx, tx, 2*(n-1)+p)
			})
		})
	}
	wg.Wait()
	if won != [2]int{1, 1} {
		t.Errorf("%v orders were sent, want one of each provider", won)
	}
}
