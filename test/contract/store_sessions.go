package contract

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var sessionClaims = []claim{
	{"a session is read back as it was written", sessionRoundTrip},
	{"another agent's session is not found", foreignSession},
	{"put writes everything that may change and no usage", sessionPut},
	{"one look has the usage and the health", sessionReadHasAll},
	{"the newest open session of a product is found", newestSession},
	{"live sessions are listed", openSessions},
	{"what is not charged yet is summed by the hour of the last use", unbookedSums},
	{"sessions are counted by status", sessionCount},
}

// addresses compare by ==, which go-cmp needs as an option.
var compareAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func sessionRoundTrip(t *testing.T, st ports.Store) {
	ended := staticSession("agt_1", "sess_3")
	ended.Status, ended.Reason, ended.EndedAt = session.Failed, session.ProviderFailed, storeNow.Add(time.Minute)
	ended.Failure, ended.Exits = session.Failure{Code: "PROVIDER_ERROR", Message: "no luck"}, nil
	all := []session.Session{dynamicSession("agt_1", "sess_1"), staticSession("agt_1", "sess_2"), ended}
	addSessions(t, st, all...)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, want := range all {
			got, err := tx.Sessions().Get(ctx, "agt_1", want.ID)
			if diff := cmp.Diff(want, got, compareAddr); diff != "" {
				t.Errorf("Get (-want +got):\n%s", diff)
			}
			loaded, loadErr := tx.Sessions().Load(ctx, want.ID)
			if diff := cmp.Diff(want, loaded, compareAddr); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
			if err := errors.Join(err, loadErr); err != nil {
				return err
			}
		}
		return nil
	})
}

func foreignSession(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, c := range []struct{ agentID, id string }{{"agt_2", "sess_1"}, {"agt_1", "sess_2"}, {"", "sess_1"}} {
			if _, err := tx.Sessions().Get(ctx, c.agentID, c.id); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("Get of %s for %q: %v", c.id, c.agentID, err)
			}
			if _, err := tx.Sessions().Read(ctx, c.agentID, c.id); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("Read of %s for %q: %v", c.id, c.agentID, err)
			}
		}
		if _, err := tx.Sessions().Load(ctx, "sess_2"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("Load: %v", err)
		}
		states, err := tx.Health().Get(ctx, "agt_2", []string{"sess_1"})
		if len(states) != 0 {
			t.Error("another agent sees the health")
		}
		return err
	})
	foreign := dynamicSession("agt_2", "sess_1")
	foreign.Status = session.Terminated
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Put(ctx, foreign) })
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Put for another agent: %v", err)
	}
}

func sessionPut(t *testing.T, st ports.Store) {
	s := dynamicSession("agt_1", "sess_1")
	addSessions(t, st, s, dynamicSession("agt_1", "sess_2"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Traffic().PutUsage(ctx, "sess_1", traffic.Delta{Up: 1, Down: 2, Connections: 3, Leased: 4, At: storeNow})
	})
	want := session.Session{ID: s.ID, AgentID: s.AgentID, Type: s.Type, ProductNo: s.ProductNo, CreatedAt: s.CreatedAt,
		Status: session.Terminated, Reason: session.AgentRequest, Bytes: 1000,
		Exits: []session.Exit{{IP: netip.MustParseAddr("192.0.2.1")}, {IP: netip.MustParseAddr("192.0.2.2")}},
		Money: session.Money{Charged: billing.Funds{Own: 7}}, EndedAt: storeNow.Add(time.Hour)}
	given := want
	given.ProductNo, given.CreatedAt = "another", storeNow.Add(time.Hour) // not taken over
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Put(ctx, given) })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Sessions().Read(ctx, "agt_1", "sess_1")
		if diff := cmp.Diff(want, got.Session, compareAddr); diff != "" {
			t.Errorf("after Put (-want +got):\n%s", diff)
		}
		if u := (traffic.Usage{Limit: 1000, Up: 1, Down: 2, Connections: 3, Leased: 4, UpdatedAt: storeNow}); got.Usage != u {
			t.Errorf("the usage is %+v, want %+v", got.Usage, u)
		}
		other, otherErr := tx.Sessions().Load(ctx, "sess_2")
		if other.Status != session.Active {
			t.Errorf("another session is now %s", other.Status)
		}
		return errors.Join(err, otherErr)
	})
}

func reportedState() (s health.State) {
	s.Report(health.Event{Type: health.Block, StatusCode: 403, Host: "example.com", At: storeNow})
	return s
}

func sessionReadHasAll(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), staticSession("agt_1", "sess_2"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Health().Put(ctx, "sess_1", reportedState()),
			tx.Traffic().PutUsage(ctx, "sess_1", traffic.Delta{Up: 5, At: storeNow}))
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		one, err := tx.Sessions().Read(ctx, "agt_1", "sess_1")
		if *one.Health != reportedState() || one.Usage.Up != 5 || one.Usage.Limit != 1000 {
			t.Errorf("usage %+v, health as reported: %v", one.Usage, *one.Health == reportedState())
		}
		two, twoErr := tx.Sessions().Read(ctx, "agt_1", "sess_2")
		if *two.Health != (health.State{}) || two.Usage != (traffic.Usage{}) {
			t.Errorf("a session to which nothing happened has %+v", two.Usage)
		}
		return errors.Join(err, twoErr)
	})
}

func newestSession(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 5)
	list[1].Status = session.Creating
	list[2].Status, list[2].ProductNo = session.Active, "dyn_2"
	list[3].Status = session.Terminated
	list[4].Status = session.Failed
	addSessions(t, st, list...)
	addSessions(t, st, dynamicSession("agt_2", "sess_foreign"))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for product, want := range map[string]string{"dyn_1": list[1].ID, "dyn_2": list[2].ID} {
			if got, err := tx.Sessions().Newest(ctx, "agt_1", "", product); got.ID != want {
				t.Errorf("the newest of %s is %q, %v; want %q", product, got.ID, err, want)
			}
		}
		if _, err := tx.Sessions().Newest(ctx, "agt_1", "", "sta_1"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("the newest of a product that was never bought: %v", err)
		}
		return nil
	})
}

func openSessions(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 4)
	list[0].Status = session.Creating
	list[1].Money.Held = billing.Funds{}
	list[2].Status = session.Terminated
	list[3].Status, list[3].Money.Held = session.Expired, billing.Funds{}
	addSessions(t, st, list...)
	addSessions(t, st, dynamicSession("agt_2", "sess_foreign"))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		live, err := tx.Sessions().Live(ctx, "agt_1")
		if diff := cmp.Diff(map[string]bool{list[0].ID: true, list[1].ID: true}, set(live)); diff != "" {
			t.Errorf("live (-want +got):\n%s", diff)
		}
		return err
	})
}

func unbookedSums(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 5)
	for i := range list {
		list[i].Bytes, list[i].Price = 10_000_000_000, 400_000
		list[i].Money = session.Money{Held: billing.Funds{Trial: 1_000_000, Own: 2_900_000}, Charged: billing.Funds{Own: 100_000}}
	}
	list[1].Status = session.Terminated
	list[2].Money.Held = billing.Funds{Own: 5}
	list[3].Money.Held = billing.Funds{}
	addSessions(t, st, list...)
	addSessions(t, st, dynamicSession("agt_2", "sess_foreign"))
	hour := storeNow.Truncate(time.Hour)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		var errs []error
		for i, at := range []time.Time{hour, hour.Add(time.Minute), hour.Add(time.Hour), hour, hour.Add(-time.Second)} {
			errs = append(errs, tx.Traffic().PutUsage(ctx, list[i].ID, traffic.Delta{Up: 1_000_000_000, Down: int64(i) * 2500, At: at}),
				tx.Traffic().SetSettleAt(ctx, list[i].ID, hour.Add(time.Hour)))
		}
		return errors.Join(errs...)
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		hours, err := tx.Sessions().Unbooked(ctx, "agt_1")
		got := map[time.Time]domain.Money{}
		for _, h := range hours {
			got[h.Start] += h.Charged
		}
		want := map[time.Time]domain.Money{hour: 300_000 + 300_001, hour.Add(time.Hour): 5, hour.Add(-time.Hour): 300_004}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("not charged yet (-want +got):\n%s", diff)
		}
		return err
	})
}

func sessionCount(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 3)
	list[2].Status = session.Expired
	addSessions(t, st, list...)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Sessions().Count(ctx, "agt_1")
		if diff := cmp.Diff(ports.SessionCount{Active: 2, Total: 3}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

func set(ids []string) map[string]bool {
	all := map[string]bool{}
	for _, id := range ids {
		all[id] = true
	}
	return all
}

func readIDs(reads []ports.SessionRead) (ids []string) {
	for _, r := range reads {
		ids = append(ids, r.ID)
	}
	return ids
}
