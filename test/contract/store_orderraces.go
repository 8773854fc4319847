package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

var orderRaceClaims = []claim{
	{"a ref is of one purchase of a provider", refsAreAdoptedOnce},
	{"of twenty purchases that adopt a ref one has it", oneAdoption},
	{"an order is found by its ref once it is confirmed, before its renewals", ordersByRef},
	{"of twenty that decide an order one does", oneDecision},
	{"of twenty orders of a provider that ask for rivals one is sent", oneIsSent},
}

func refsAreAdoptedOnce(t *testing.T, st ports.Store) {
	first := upstreamOrder(1, "one")
	addUpstream(t, st, first, upstreamOrder(2, "one"), upstreamOrder(3, "two"), renewalOf(first, 4), renewalOf(first, 5),
		upstreamOrder(6, "one"), upstreamOrder(7, "one"))
	unknown, refused, planned := confirmed(upstreamOrder(2, "one"), "R/1"), confirmed(upstreamOrder(2, "one"), "R/1"), upstreamOrder(2, "one")
	unknown.Status, refused.Status = procurement.Unknown, procurement.Refused
	for _, c := range []struct {
		name string
		put  procurement.Order
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
		{"the first gives it up", as(confirmed(first, "R/1"), procurement.Refused), nil},
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
		return tx.Orders().Put(ctx, as(planned, procurement.Sent))
	})
	wantUpstream(t, st, confirmed(first, "r/2"), as(planned, procurement.Sent))
}

// twenty runs a unit for each of the numbers 1 to 20 at once, and returns how many
// returned nil. The others have to return the error. Before, each reads for a
// while, so that no connection has to be made when it counts.
func twenty(t *testing.T, st ports.Store, refused error, run func(ctx context.Context, tx ports.Tx, n int) error) int {
	var won atomic.Int32
	all := func(do func(n int) error) {
		var wg sync.WaitGroup
		for n := 1; n <= 20; n++ {
			wg.Go(func() {
				switch err := do(n); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, refused):
					t.Errorf("unit %d: %v", n, err)
				}
			})
		}
		wg.Wait()
	}
	all(func(int) error {
		return st.Read(t.Context(), func(context.Context, ports.Tx) error {
			overlap()
			return nil
		})
	})
	won.Store(0)
	all(func(n int) error {
		return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return run(ctx, tx, n) })
	})
	return int(won.Load())
}

func oneAdoption(t *testing.T, st ports.Store) {
	for n := 1; n <= 20; n++ {
		addUpstream(t, st, upstreamOrder(n, "one"))
	}
	won := twenty(t, st, ports.ErrDuplicate, func(ctx context.Context, tx ports.Tx, n int) error {
		err := tx.Orders().Put(ctx, confirmed(upstreamOrder(n, "one"), "R/1"))
		overlap()
		return err
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Orders().List(ctx, ports.OrderFilter{Status: procurement.Confirmed}, domain.Page{Number: 1, Size: 20})
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
		upstreamOrder(5, "one"), confirmed(upstreamOrder(6, "two"), "R/6"), confirmed(renewalOf(first, 7), "R/1"),
		confirmed(upstreamOrder(8, "one"), ""))
	find := func(provider, ref, want string) {
		t.Helper()
		for name, unit := range map[string]func(context.Context, unit) error{"look": st.Read, "update": bare(st.Update)} {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				got, err := tx.Orders().ByRef(ctx, provider, ref)
				if got.ID != want {
					t.Errorf("%s: %s of %s is %q, want %q", name, ref, provider, got.ID, want)
				}
				return err
			})
			if (want == "") != errors.Is(err, procurement.ErrOrderNotFound) || want != "" && err != nil {
				t.Errorf("%s: %s of %s: %v", name, ref, provider, err)
			}
		}
	}
	find("one", "R/1", "ord_7") // of renewals the last
	for _, status := range []procurement.Status{procurement.Unknown, procurement.Refused, procurement.Sent, procurement.Planned} {
		o := confirmed(first, "R/1")
		if err := putUpstream(t, st, as(o, status)); err != nil {
			t.Fatal(err)
		}
		find("one", "R/1", "ord_7")
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
	reads := map[string]func(context.Context, ports.Orders) (procurement.Order, error){
		"by id": func(ctx context.Context, orders ports.Orders) (procurement.Order, error) {
			return orders.Get(ctx, "ord_1")
		},
		"by ref": func(ctx context.Context, orders ports.Orders) (procurement.Order, error) {
			return orders.ByRef(ctx, "one", "R/1")
		},
		"of the session": func(ctx context.Context, orders ports.Orders) (procurement.Order, error) {
			return only(orders.Of(ctx, "sess_1"))
		},
		"listed": func(ctx context.Context, orders ports.Orders) (procurement.Order, error) {
			list, err := orders.List(ctx, ports.OrderFilter{}, domain.Page{Number: 1, Size: 1})
			return only(list.Items, err)
		},
	}
	addUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1"))
	for name, read := range reads {
		if err := putUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1")); err != nil {
			t.Fatal(err)
		}
		won := twenty(t, st, procurement.ErrDecided, func(ctx context.Context, tx ports.Tx, _ int) error {
			o, err := read(ctx, tx.Orders())
			if err != nil {
				return err
			}
			if !o.ClosedAt.IsZero() {
				return procurement.ErrDecided
			}
			overlap()
			o.ClosedAt = storeNow
			return tx.Orders().Put(ctx, o)
		})
		if won != 1 {
			t.Errorf("%s: %d closed the order, want 1", name, won)
		}
	}
}

func only(list []procurement.Order, err error) (procurement.Order, error) {
	if err != nil || len(list) != 1 {
		return procurement.Order{}, errors.Join(err, fmt.Errorf("there are %d orders", len(list)))
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
		open, _, err := tx.Orders().CountOpen(ctx, o)
		if err != nil {
			return err
		}
		if open > 0 {
			return procurement.ErrDecided
		}
		overlap()
		if o, err = o.Send(procurement.Snapshot{}, storeNow); err != nil {
			return err
		}
		return tx.Orders().Put(ctx, o)
	}
	var won [2]int
	var wg sync.WaitGroup
	for p := range won {
		wg.Go(func() {
			won[p] = twenty(t, st, procurement.ErrDecided, func(ctx context.Context, tx ports.Tx, n int) error {
				return send(ctx, tx, 2*(n-1)+p)
			})
		})
	}
	wg.Wait()
	if won != [2]int{1, 1} {
		t.Errorf("%v orders were sent, want one of each provider", won)
	}
}
