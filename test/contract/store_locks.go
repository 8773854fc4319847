package contract

import (
	"context"
	"sync"
	"testing"

	"agentproxy/domain"
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

// lockedInOrder adds to two sessions and two wallets, in the opposite order in every other unit.
func lockedInOrder(t *testing.T, st ports.Store) {
	const units = 20
	addAgent(t, st, "agt_1", 1)
	addAgent(t, st, "agt_2", 1)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_2", "sess_2"))
	var wg sync.WaitGroup
	for i := range units {
		ids, agents := []string{"sess_1", "sess_2"}, []string{"agt_1", "agt_2"}
		if i%2 == 1 {
			ids, agents = []string{"sess_2", "sess_1"}, []string{"agt_2", "agt_1"}
		}
		wg.Go(func() {
			err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				if err := tx.Sessions().Lock(ctx, ids); err != nil {
					return err
				}
				if err := tx.Ledger().Lock(ctx, agents); err != nil {
					return err
				}
				for n := range ids {
					u, err := tx.Traffic().Usage(ctx, ids[n])
					if err != nil {
						return err
					}
					if err := tx.Traffic().PutUsage(ctx, ids[n], traffic.Delta{Up: 1, At: u.UpdatedAt}); err != nil {
						return err
					}
					w, err := tx.Ledger().Wallet(ctx, agents[n])
					if err != nil {
						return err
					}
					w.Budget.Daily = new(domain.Money)
					if err := tx.Ledger().PutBudget(ctx, agents[n], w.Budget); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range []string{"sess_1", "sess_2"} {
		if u := usage(t, st, id); u.Up != units {
			t.Errorf("%s used %d", id, u.Up)
		}
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Sessions().Lock(ctx, nil); err != nil {
			return err
		}
		return tx.Ledger().Lock(ctx, nil)
	})
}
