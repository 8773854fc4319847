package contract

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentproxy/domain/exitlog"
	"agentproxy/ports"
)

var exitLogClaims = []claim{
	{"records of the exit log are read back by the time they were stored", exitLogBetween},
	{"old records are purged in batches, but for those of a hold", exitLogPurge},
	{"holds and look-ups are kept", exitLogKept},
}

// exitRecord returns the record of the n-th connection of a replica.
func exitRecord(n uint64) exitlog.Connection {
	return exitlog.Connection{Replica: "gw_1", Number: n, Agent: "agt_1", Session: "sess_1",
		Client: netip.MustParseAddrPort("192.0.2.1:40000"), Host: "shop.example",
		Target: netip.MustParseAddrPort("198.51.100.7:443"), Exit: netip.MustParseAddrPort("[2001:db8::1]:50000"),
		Opened: storeNow, Closed: storeNow.Add(time.Second), Seen: storeNow.Add(time.Second), Bytes: 7, End: exitlog.Finished}
}

// appendExits stores records as one batch that a replica reports at a time.
func appendExits(t *testing.T, st ports.Store, at time.Time, records ...exitlog.Connection) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.ExitLog().Append(ctx, "gw_1", at, records) })
}

// exitNumbers returns the numbers of the records that were stored between two times.
func exitNumbers(t *testing.T, st ports.Store, from, to time.Time) (numbers []uint64) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.ExitLog().Between(ctx, from, to, func(c exitlog.Connection) { numbers = append(numbers, c.Number) })
	})
	return numbers
}

func exitLogBetween(t *testing.T, st ports.Store) {
	many := make([]exitlog.Connection, 4500)
	for i := range many {
		many[i] = exitRecord(uint64(i))
	}
	appendExits(t, st, storeNow, many...)
	appendExits(t, st, storeNow.Add(time.Minute), exitRecord(9001))
	appendExits(t, st, storeNow.Add(2*time.Minute), exitRecord(9002))
	if n := len(exitNumbers(t, st, storeNow, storeNow)); n != len(many) {
		t.Errorf("%d of the first batch, want %d", n, len(many))
	}
	if diff := cmp.Diff([]uint64{9001, 9002}, exitNumbers(t, st, storeNow.Add(time.Second), storeNow.Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
	var got exitlog.Connection
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.ExitLog().Between(ctx, storeNow.Add(time.Minute), storeNow.Add(time.Minute), func(c exitlog.Connection) { got = c })
	})
	if got != exitRecord(9001) {
		t.Errorf("read back as %+v", got)
	}
}

func exitLogPurge(t *testing.T, st ports.Store) {
	day := func(n int) time.Time { return storeNow.Truncate(24*time.Hour).AddDate(0, 0, n) }
	for n := range 5 {
		appendExits(t, st, day(n), exitRecord(uint64(10*n)))
		appendExits(t, st, day(n).Add(time.Hour), exitRecord(uint64(10*n+1)))
	}
	hold := exitlog.Hold{ID: "hold_1", From: day(1), To: day(2), Operator: "op", Reason: "case 7", CreatedAt: storeNow}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.ExitLog().AddHold(ctx, hold) })
	purge := func() (n int) {
		update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			n, err = tx.ExitLog().Purge(ctx, day(3), time.Minute, 2)
			return err
		})
		return n
	}
	if a, b, c := purge(), purge(), purge(); a != 2 || b != 1 || c != 0 {
		t.Errorf("purged %d, %d and %d, want 2, 1 and 0", a, b, c)
	}
	left := []uint64{10, 11, 20, 30, 31, 40, 41} // 20 was stored within the margin after the hold
	if diff := cmp.Diff(left, exitNumbers(t, st, day(0), day(9))); diff != "" {
		t.Error(diff)
	}
	for _, want := range []bool{true, false} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			ended, err := tx.ExitLog().EndHold(ctx, "hold_1", storeNow)
			if ended != want {
				t.Errorf("the hold was ended: %v, want %v", ended, want)
			}
			return err
		})
	}
	if a, b := purge(), purge(); a != 2 || b != 1 {
		t.Errorf("after the hold purged %d and %d, want 2 and 1", a, b)
	}
}

func exitLogKept(t *testing.T, st ports.Store) {
	holds := []exitlog.Hold{{ID: "hold_2", From: storeNow, To: storeNow.Add(time.Hour), Operator: "b", Reason: "y", CreatedAt: storeNow},
		{ID: "hold_1", From: storeNow, To: storeNow, Operator: "a", Reason: "x", CreatedAt: storeNow, EndedAt: storeNow}}
	lookups := []exitlog.Lookup{{ID: "look_2", At: storeNow, Operator: "a", Reason: "x", Found: 3, Query: exitlog.Query{
		Exit: netip.MustParseAddr("203.0.113.9"), Port: 65535, At: storeNow, Within: time.Minute, Target: "shop.example"}},
		{ID: "look_1", At: storeNow, Query: exitlog.Query{Exit: netip.MustParseAddr("2001:db8::1"), At: storeNow}},
		{ID: "look_3", At: storeNow, Query: exitlog.Query{Agent: "agt_1", Client: netip.MustParseAddr("192.0.2.1"), At: storeNow}},
		{ID: "look_4", At: storeNow, Query: exitlog.Query{Target: "client=a&b c", At: storeNow}},
		{ID: "look_5", At: storeNow, Query: exitlog.Query{Target: "shop.example", Seller: "a b", Token: "10.0.0.1:7", At: storeNow}}}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for i := range 2 {
			if err := tx.ExitLog().AddHold(ctx, holds[1-i]); err != nil {
				return err
			}
		}
		for i := range lookups {
			if err := tx.ExitLog().AddLookup(ctx, lookups[len(lookups)-1-i]); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		gotHolds, err := tx.ExitLog().Holds(ctx)
		if diff := cmp.Diff(holds, gotHolds); diff != "" {
			t.Error(diff)
		}
		if err != nil {
			return err
		}
		got, err := tx.ExitLog().Lookups(ctx, 4)
		if diff := cmp.Diff(lookups[:4], got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Error(diff)
		}
		if all, err := tx.ExitLog().Lookups(ctx, 9); err != nil || len(all) != 5 || all[4].Query != lookups[4].Query {
			t.Errorf("all look-ups: %+v, %v", all, err)
		}
		return err
	})
}
