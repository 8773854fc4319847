package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var claimClaims = []claim{
	{"a claim is read back as it was added", claimRoundTrip},
	{"a seat of a line is claimed once, and all or none are added", claimsAreUnique},
	{"each order that claims at once with others sees what they have claimed", claimsRace},
}

func claimOf(line, order string, seat int) procurement.Claim {
	return procurement.Claim{Provider: "list", Line: line, Seat: seat, OrderID: order, SKU: "isp",
		Location: session.Location{Country: "US", City: "miami"}, Exit: "192.0.2.1",
		EndsAt: storeNow.Add(time.Hour), Renewal: "ord_r", ClaimedAt: storeNow}
}

func claimRoundTrip(t *testing.T, st ports.Store) {
	one, two, other := claimOf("a", "ord_1", 0), claimOf("b", "ord_1", 1), claimOf("c", "ord_2", 0)
	two.EndsAt, two.Exit, two.Renewal = time.Time{}, "", ""
	foreign := claimOf("a", "ord_1", 0)
	foreign.Provider = "other"
	expect := func(what string, want ...procurement.Claim) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Claims().All(ctx, "list")
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
			return nil
		})
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Claims().Add(ctx, nil), tx.Claims().Add(ctx, []procurement.Claim{two, other, one, foreign}))
	})
	expect("added", one, two, other)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Claims().Of(ctx, "list", "ord_1")
		if err != nil || !slices.Equal(got, []procurement.Claim{one, two}) {
			t.Errorf("of one order: %+v, %v", got, err)
		}
		if got, err = tx.Claims().Of(ctx, "list", "ord_3"); err != nil || len(got) != 0 {
			t.Errorf("of an order without: %+v, %v", got, err)
		}
		return nil
	})
	for range 2 {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Claims().Drop(ctx, "list", "ord_1") })
		expect("dropped", other)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if got, err := tx.Claims().All(ctx, "other"); err != nil || !slices.Equal(got, []procurement.Claim{foreign}) {
			t.Errorf("of another provider: %+v, %v", got, err)
		}
		return nil
	})
}

func claimsAreUnique(t *testing.T, st ports.Store) {
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Claims().Add(ctx, []procurement.Claim{claimOf("a", "ord_1", 0)})
	})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		err := tx.Claims().Add(ctx, []procurement.Claim{claimOf("b", "ord_2", 0), claimOf("a", "ord_2", 0)})
		if !errors.Is(err, ports.ErrDuplicate) {
			t.Errorf("a line that is claimed: %v", err)
		}
		return tx.Claims().Add(ctx, []procurement.Claim{claimOf("a", "ord_3", 1)}) // the unit goes on
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Claims().All(ctx, "list")
		if err != nil || !slices.Equal(got, []procurement.Claim{claimOf("a", "ord_1", 0), claimOf("a", "ord_3", 1)}) {
			t.Errorf("got %+v, %v", got, err)
		}
		return nil
	})
}

func claimsRace(t *testing.T, st ports.Store) {
	const buyers = 8
	var wg sync.WaitGroup
	for n := range buyers {
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				taken, err := tx.Claims().All(ctx, "list")
				if err != nil {
					return err
				}
				overlap()
				order := fmt.Sprintf("ord_%d", n)
				return tx.Claims().Add(ctx, []procurement.Claim{claimOf(fmt.Sprintf("line%d", len(taken)), order, 0)})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Claims().All(ctx, "list")
		if err != nil || len(got) != buyers {
			t.Errorf("%d claims, %v", len(got), err)
		}
		return nil
	})
}
