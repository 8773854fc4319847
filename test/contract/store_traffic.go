package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var trafficClaims = []claim{
	{"a delta moves the usage", usageMoves},
	{"of twenty lessees with stale reads none overspends", lesseesCannotOverspend},
	{"usage beyond a limit is refused and moves nothing", overspendingIsRefused},
	{"usage of an unknown session is not found", unknownUsage},
}

func usage(t *testing.T, st ports.Store, sessionID string) (u traffic.Usage) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		u, err = tx.Traffic().Usage(ctx, sessionID)
		return err
	})
	return u
}

func putUsage(t *testing.T, st ports.Store, sessionID string, d traffic.Delta) error {
	t.Helper()
	return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Traffic().PutUsage(ctx, sessionID, d)
	})
}

func usageMoves(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), staticSession("agt_1", "sess_2"))
	for _, d := range []traffic.Delta{
		{Leased: 500, At: storeNow},
		{Up: 100, Down: 200, Connections: 2, Leased: -300, At: storeNow.Add(time.Second)},
	} {
		if err := putUsage(t, st, "sess_1", d); err != nil {
			t.Fatal(err)
		}
	}
	want := traffic.Usage{Limit: 1000, Up: 100, Down: 200, Connections: 2, Leased: 200, UpdatedAt: storeNow.Add(time.Second)}
	if got := usage(t, st, "sess_1"); got != want {
		t.Errorf("the usage is %+v, want %+v", got, want)
	}
	if err := putUsage(t, st, "sess_2", traffic.Delta{Down: 1 << 40, At: storeNow}); err != nil {
		t.Errorf("a session without a limit: %v", err)
	}
}

// lesseesCannotOverspend lets each decide on a snapshot that others outdate.
func lesseesCannotOverspend(t *testing.T, st ports.Store) {
	const lessees, each = 20, 90 // 11 of them fit into 1,000
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	var read, done sync.WaitGroup
	var granted atomic.Int32
	read.Add(lessees)
	for i := range lessees {
		done.Go(func() {
			left := usage(t, st, "sess_1").Left()
			read.Done()
			read.Wait()
			if left < each {
				t.Errorf("%d bytes are left before anybody took some", left)
			}
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				err := tx.Traffic().PutUsage(ctx, "sess_1", traffic.Delta{Leased: each, At: storeNow})
				if err != nil {
					return err
				}
				return tx.Traffic().PutLease(ctx, traffic.Lease{SessionID: "sess_1", ID: fmt.Sprint(i), Granted: each})
			})
			if err == nil {
				granted.Add(1)
			} else if !errors.Is(err, ports.ErrOverspent) {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n, u := granted.Load(), usage(t, st, "sess_1"); n != 11 || u.Leased != 11*each {
		t.Errorf("%d leases were granted and %d bytes leased, want 11 and %d", n, u.Leased, 11*each)
	}
}

func overspendingIsRefused(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	if err := putUsage(t, st, "sess_1", traffic.Delta{Up: 300, Down: 300, Leased: 400, At: storeNow}); err != nil {
		t.Fatalf("up to the limit: %v", err)
	}
	before := usage(t, st, "sess_1")
	for _, d := range []traffic.Delta{{Leased: 1}, {Up: 1}, {Down: 1}, {Up: 500, Leased: -400}, {Leased: -401}} {
		if err := putUsage(t, st, "sess_1", d); !errors.Is(err, ports.ErrOverspent) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if got := usage(t, st, "sess_1"); got != before {
		t.Errorf("the usage moved to %+v", got)
	}
}

func unknownUsage(t *testing.T, st ports.Store) {
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Traffic().Usage(ctx, "sess_1"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("Usage: %v", err)
		}
		return nil
	})
	if err := putUsage(t, st, "sess_1", traffic.Delta{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("PutUsage: %v", err)
	}
}
