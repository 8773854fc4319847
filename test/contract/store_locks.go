package contract

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var lockClaims = []claim{
	{"metered sessions come with their usage and leases", meteredRead},
	{"units that lock sessions and wallets first do not disturb each other", lockedInOrder},
}

func meteredRead(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_2", "sess_2"), staticSession("agt_1", "sess_3"))
	if err := putUsage(t, st, "sess_1", traffic.Delta{Up: 1, Down: 2, Leased: 3, At: storeNow}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []traffic.Lease{{SessionID: "sess_1", ID: "a", Granted: 6}, {SessionID: "sess_1", ID: "b"}, {SessionID: "sess_2", ID: "a"}} {
		putLease(t, st, l)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Traffic().Metered(ctx, []string{"sess_3", "sess_none", "sess_1"})
		if err != nil {
			return err
		}
		if len(got) != 2 || got["sess_1"] == nil || got["sess_3"] == nil {
			t.Fatalf("read %+v", got)
		}
		for id, m := range got {
			s, err := tx.Sessions().Load(ctx, id)
			if err != nil {
				return err
			}
			u, err := tx.Traffic().Usage(ctx, id)
			if err != nil {
				return err
			}
			if m.Session.ID != s.ID || m.Session.AgentID != s.AgentID || m.Session.Status != s.Status || m.Usage != u {
				t.Errorf("%s is %+v with %+v", id, m.Session, m.Usage)
			}
		}
		if l := got["sess_1"].Leases; len(l) != 2 || l["a"].Granted != 6 || len(got["sess_3"].Leases) != 0 {
			t.Errorf("leases %+v", l)
		}
		none, err := tx.Traffic().Metered(ctx, nil)
		if len(none) != 0 {
			t.Errorf("of no ids there are %d", len(none))
		}
		return err
	})
}

// lockedInOrder writes to two sessions, and then to two wallets, in the opposite order in every other
// unit. A unit that deadlocks is run again.
func lockedInOrder(t *testing.T, st ports.Store) {
	const units = 10
	addAgent(t, st, "agt_1", 1)
	addAgent(t, st, "agt_2", 1)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_2", "sess_2"))
	inEitherOrder(t, st, units, []string{"sess_1", "sess_2"}, func(ctx context.Context, tx ports.Tx, ids []string) error {
		return tx.Sessions().Lock(ctx, ids)
	}, func(ctx context.Context, tx ports.Tx, id string) error {
		u, err := tx.Traffic().Usage(ctx, id)
		if err != nil {
			return err
		}
		return tx.Traffic().PutUsage(ctx, id, traffic.Delta{Up: 1, At: u.UpdatedAt})
	})
	inEitherOrder(t, st, units, []string{"agt_1", "agt_2"}, func(ctx context.Context, tx ports.Tx, ids []string) error {
		return tx.Ledger().Lock(ctx, ids)
	}, func(ctx context.Context, tx ports.Tx, id string) error {
		if _, err := tx.Ledger().Wallet(ctx, id); err != nil {
			return err
		}
		return tx.Ledger().SetLive(ctx, id, "", 1)
	})
	for _, id := range []string{"sess_1", "sess_2"} {
		if u := usage(t, st, id); u.Up != units {
			t.Errorf("%s used %d, want %d", id, u.Up, units)
		}
	}
	for _, id := range []string{"agt_1", "agt_2"} {
		if w := wallet(t, st, id); w.LiveSessions != units {
			t.Errorf("%s has %d live sessions, want %d", id, w.LiveSessions, units)
		}
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Sessions().Lock(ctx, nil), tx.Ledger().Lock(ctx, nil))
	})
}

// inEitherOrder runs units at once that lock two ids and write to both, every other one in the
// opposite order, and checks that each is run once.
func inEitherOrder(t *testing.T, st ports.Store, units int, ids []string,
	lock func(ctx context.Context, tx ports.Tx, ids []string) error,
	write func(ctx context.Context, tx ports.Tx, id string) error) {
	t.Helper()
	var runs atomic.Int32
	var wg sync.WaitGroup
	for i := range units {
		order := slices.Clone(ids)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		wg.Go(func() {
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				runs.Add(1)
				if err := lock(ctx, tx, order); err != nil {
					return err
				}
				for _, id := range order {
					if err := write(ctx, tx, id); err != nil {
						return err
					}
					overlap()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := int(runs.Load()); n != units {
		t.Errorf("%d units that write to %v were run %d times, want each once", units, ids, n)
	}
}
