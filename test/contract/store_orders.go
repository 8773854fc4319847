package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var orderClaims = []claim{
	{"an upstream order is read back as it was inserted", upstreamRoundTrip},
	{"an upstream order is inserted once, with an intent of its own", upstreamInsertedOnce},
	{"put of an upstream order changes all but whose it is and what was asked for", upstreamPut},
	{"put of an unknown upstream order is refused", upstreamPutUnknown},
	{"put of an upstream order notes a change of its session", upstreamChangesNoted},
	{"an upstream order follows its unit", upstreamFollowsItsUnit},
	{"a sealed delivery is replaced unless it changed meanwhile", deliveriesResealed},
}

func deliveriesResealed(t *testing.T, st ports.Store) {
	for n := range 3 {
		addUpstream(t, st, upstreamOrder(n, "seller"))
	}
	sealed := func(after int64, limit int) (list []ports.SealedDelivery) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			list, err = tx.Orders().Sealed(ctx, after, limit)
			return err
		})
		return list
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Orders().Put(ctx, confirmed(upstreamOrder(1, "seller"), "ref-1"))
	})
	all := sealed(0, 10)
	if len(all) != 3 || all[0].OrderID != "ord_0" || len(all[0].Sealed) != 0 || string(all[1].Sealed) != "sealed" {
		t.Fatalf("the deliveries are %+v", all)
	}
	if first := sealed(0, 1); len(first) != 1 || first[0].OrderID != "ord_0" {
		t.Errorf("the first is %+v", first)
	}
	if rest := sealed(all[1].Position, 10); len(rest) != 1 || rest[0].OrderID != "ord_2" {
		t.Errorf("the rest is %+v", rest)
	}
	for _, want := range []bool{true, false} { // the second time it is another one
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			done, err := tx.Orders().Reseal(ctx, all[1], []byte("sealed anew"))
			if done != want {
				t.Errorf("replaced: %t, want %t", done, want)
			}
			return err
		})
	}
	want := confirmed(upstreamOrder(1, "seller"), "ref-1")
	want.SealedDelivery = []byte("sealed anew")
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Orders().Get(ctx, "ord_1")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

// upstreamOrder returns a planned order of a session of its own.
func upstreamOrder(n int, provider string) procurement.Order {
	id, sessionID := fmt.Sprintf("ord_%d", n), fmt.Sprintf("sess_%d", n)
	return procurement.Order{
		ID: id, Kind: procurement.Purchase, SessionID: sessionID, Provider: provider, Status: procurement.Planned,
		Intent: procurement.Intent{Key: id, SessionID: sessionID, Type: session.Static, SKU: "isp-1",
			Location: session.Location{Country: "DE", City: "berlin"}, Quantity: 2, Days: 30, Bytes: 1 << 40, MaxCost: 9_000_001},
		PlannedAt: storeNow.Add(time.Duration(n) * time.Minute),
	}
}

// renewalOf returns a planned renewal of what an order bought.
func renewalOf(o procurement.Order, n int) procurement.Order {
	r := upstreamOrder(n, o.Provider)
	r.Kind, r.SessionID, r.Intent.SessionID = procurement.Renewal, o.SessionID, o.SessionID
	return r
}

// confirmed returns an order as the provider made it.
func confirmed(o procurement.Order, ref string) procurement.Order {
	o.Status, o.Ref, o.State, o.SealedDelivery = procurement.Confirmed, ref, procurement.Live, []byte("sealed")
	o.SentAt, o.DecidedAt = o.PlannedAt.Add(time.Second), o.PlannedAt.Add(2*time.Second)
	return o
}

// as returns an order of a status that is not confirmed.
func as(o procurement.Order, status procurement.Status) procurement.Order {
	o.Status = status
	return o
}

func addUpstream(t testing.TB, st ports.Store, list ...procurement.Order) {
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

func putUpstream(t testing.TB, st ports.Store, o procurement.Order) error {
	t.Helper()
	return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return tx.Orders().Put(ctx, o) })
}

// wantUpstream reads orders in every kind of unit.
func wantUpstream(t testing.TB, st ports.Store, want ...procurement.Order) {
	t.Helper()
	for name, unit := range map[string]func(context.Context, unit) error{"view": bare(st.View), "look": st.Read, "update": bare(st.Update)} {
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
		&full.ExpiresAt, &full.CutAt, &full.Counter.FellAt} {
		*at = storeNow.Add(time.Duration(i+1) * time.Hour)
	}
	full.Status, full.State, full.Class = procurement.Unknown, procurement.Pending, procurement.Ambiguous
	full.Before = procurement.Snapshot{Refs: []string{"a", `"é"' <,>`, ""}, Funds: procurement.ProviderBalance{Amount: -7, Known: true}, At: storeNow.Add(-time.Minute)}
	full.Counter.Base = 900_000_000
	full.Ref, full.SealedDelivery, full.Cost, full.Reason = "R/1", []byte{0, 1, 255}, 8_123_456, "no answer; é\u2028'\\"
	taken := upstreamOrder(2, "two")
	taken.Intent.Taken = map[string]bool{"127.0.0.2": true}
	none := procurement.Order{ID: "ord_3", Intent: procurement.Intent{Key: "ord_3"}, Before: procurement.Snapshot{Refs: []string{}}}
	addUpstream(t, st, full, taken, none)
	taken.Intent.Taken = nil
	wantUpstream(t, st, full, taken, none)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, id := range []string{"ord_4", "", "ORD_1"} {
			if _, err := tx.Orders().Get(ctx, id); !errors.Is(err, procurement.ErrOrderNotFound) {
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
	for _, o := range []procurement.Order{again, key, owner} {
		err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return tx.Orders().Insert(ctx, o) })
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
	want.Status, want.Ref, want.State = procurement.Confirmed, "R/1", procurement.Gone
	want.Before = procurement.Snapshot{Refs: []string{"x"}, Funds: procurement.ProviderBalance{Amount: 5, Known: true}, At: storeNow.Add(-time.Second)}
	want.SealedDelivery, want.Cost, want.Class, want.Reason = []byte("sealed"), 3, procurement.Conflict, "why"
	for i, at := range []*time.Time{&want.SentAt, &want.DecidedAt, &want.NextAt, &want.FrozenAt, &want.LostAt, &want.ClosedAt,
		&want.ExpiresAt} {
		*at = storeNow.Add(time.Duration(i+1) * time.Hour)
	}
	put := want
	put.Kind, put.SessionID, put.Provider, put.PlannedAt = procurement.Renewal, "sess_9", "two", storeNow.Add(-time.Hour)
	put.Intent = procurement.Intent{Key: "ord_9", SessionID: "sess_9", Type: session.Dynamic, SKU: "other",
		Location: session.Location{Country: "US", City: "boston"}, Quantity: 9, Days: 9, Bytes: 9, MaxCost: 9}
	for _, o := range []procurement.Order{put, first} { // there and back
		if err := putUpstream(t, st, o); err != nil {
			t.Fatal(err)
		}
		wantUpstream(t, st, want, other)
		want = first
	}
}

func upstreamPutUnknown(t *testing.T, st ports.Store) {
	addUpstream(t, st, confirmed(upstreamOrder(1, "one"), "R/1"))
	for _, o := range []procurement.Order{upstreamOrder(2, "one"), confirmed(upstreamOrder(2, "one"), "R/1")} {
		if err := putUpstream(t, st, o); !errors.Is(err, procurement.ErrOrderNotFound) {
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
	other := as(upstreamOrder(1, "one"), procurement.Sent)
	other.SessionID = "sess_9" // not whose it is
	orphan.SessionID = "sess_9"
	for _, o := range []procurement.Order{orphan, other} {
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
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Orders().Insert(ctx, upstreamOrder(2, "one")),
			tx.Orders().Put(ctx, as(upstreamOrder(1, "one"), procurement.Sent)), errUnit)
	})
	if !errors.Is(err, errUnit) {
		t.Fatal(err)
	}
	wantUpstreamList(t, st, ports.OrderFilter{}, domain.Page{Number: 1, Size: 20}, 1, upstreamOrder(1, "one"))
}
