package contract

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

var workerClaims = []claim{
	{"a worker is read back as it was written", workerRoundTrip},
	{"workers are one session's, and listed by name", workersOfOne},
	{"a page of workers is in the order that people count in", workerPages},
	{"a worker of an unknown session is refused", workerUnknown},
	{"what is counted for a worker adds up", workerUsage},
	{"a removed worker counts nothing for a later one of its name", workerRemoved},
	{"the health of workers is read back", workerHealthRoundTrip},
	{"a lease keeps what its workers used", leaseOfWorkers},
}

func storedWorker(sessionID, name string) worker.Worker {
	return worker.Worker{SessionID: sessionID, Name: name, CreatedAt: storeNow, AssignedAt: storeNow}
}

func insertWorker(t *testing.T, st ports.Store, w worker.Worker) (id int64) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		id, err = tx.Workers().Insert(ctx, w)
		return err
	})
	return id
}

func workersOf(t *testing.T, st ports.Store, sessionID string) (list []worker.Worker) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Workers().Of(ctx, sessionID)
		return err
	})
	return list
}

func workerRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	w := storedWorker("sess_1", "w_A")
	check := func() {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Workers().Get(ctx, "sess_1", "w_A")
			if diff := cmp.Diff(w, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
			return err
		})
	}
	w.ID = insertWorker(t, st, w)
	check()
	w.Settings = worker.Settings{Location: session.Location{Country: "US", City: "New-York"}, TTL: 90 * time.Second,
		Strict: true, Unique: true, MaxBytes: 1 << 40}
	w.Exit, w.Turn, w.Lost, w.Changeable, w.Rotations = session.Exit{IP: netip.MustParseAddr("2001:db8::7")}, 3, true, true, 2
	w.AssignedAt = storeNow.Add(time.Minute)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Workers().Put(ctx, w) })
	check()
}

func workersOfOne(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_1", "sess_2"))
	for _, name := range []string{"b", "B", "a10", "a9", "_"} {
		insertWorker(t, st, storedWorker("sess_1", name))
	}
	insertWorker(t, st, storedWorker("sess_2", "b"))
	var names []string
	for _, w := range workersOf(t, st, "sess_1") {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{"B", "_", "a10", "a9", "b"}, names); diff != "" {
		t.Error(diff)
	}
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Workers().Insert(ctx, storedWorker("sess_1", "b"))
		return err
	})
	if err == nil {
		t.Error("a session has two workers of one name")
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Workers().Get(ctx, "sess_2", "a9"); !errors.Is(err, worker.ErrNotFound) {
			t.Errorf("another session's worker: %v", err)
		}
		return nil
	})
}

func workerPages(t *testing.T, st ports.Store) {
	for _, id := range []string{"sess_live", "sess_ended"} {
		s := dynamicSession("agt_1", id)
		if id == "sess_ended" {
			s = endedAt(s, storeNow)
		}
		addSessions(t, st, s)
		for i, name := range []string{"w10", "b", "w9", "B", "w1"} {
			w := storedWorker(id, name)
			w.Lost, w.MaxBytes = i%2 == 1, int64(i%3*10)
			w.ID = insertWorker(t, st, w)
			update(t, st, func(ctx context.Context, tx ports.Tx) error {
				return errors.Join(tx.Workers().Put(ctx, w), tx.Workers().Count(ctx, w.ID, worker.Usage{Up: 4, Down: 6}, storeNow))
			})
		}
	}
	addSessions(t, st, dynamicSession("agt_1", "sess_other"))
	insertWorker(t, st, storedWorker("sess_other", "w2"))
	check := func(id string) {
		t.Helper()
		for _, c := range []struct {
			of           worker.Status
			number, size int
			total        int
			want         []string
		}{
			{"", 1, 2, 5, []string{"B", "b"}}, {"", 2, 2, 5, []string{"w1", "w9"}}, {"", 3, 2, 5, []string{"w10"}},
			{"", 4, 2, 5, nil}, {"", 1, 100, 5, []string{"B", "b", "w1", "w9", "w10"}},
			{worker.Exhausted, 1, 9, 2, []string{"b", "w1"}}, {worker.ExitLost, 1, 9, 1, []string{"B"}},
			{worker.Active, 2, 1, 2, []string{"w10"}},
		} {
			view(t, st, func(ctx context.Context, tx ports.Tx) error {
				all, err := tx.Workers().Of(ctx, id)
				if err != nil {
					return err
				}
				list, err := tx.Workers().Page(ctx, id, c.of, domain.Page{Number: c.number, Size: c.size})
				var names []string
				for _, w := range list.Items {
					names = append(names, w.Name)
					if !slices.Contains(all, w) {
						t.Errorf("%s: %+v is none of the workers", id, w)
					}
				}
				if diff := cmp.Diff(c.want, names); diff != "" || list.Total != c.total {
					t.Errorf("%s, page %d of %q: %d in all, %s", id, c.number, c.of, list.Total, diff)
				}
				return err
			})
		}
	}
	check("sess_live")
	check("sess_ended")
	archive(t, st, "sess_ended")
	check("sess_ended")
}

func workerUnknown(t *testing.T, st ports.Store) {
	for _, do := range []func(context.Context, ports.Tx) error{
		func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Workers().Insert(ctx, storedWorker("sess_1", "a"))
			return err
		},
		func(ctx context.Context, tx ports.Tx) error { return tx.Workers().Put(ctx, worker.Worker{ID: 7}) },
	} {
		err := st.Update(t.Context(), ports.ReadSet{}, do)
		if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, worker.ErrNotFound) {
			t.Errorf("the error is %v", err)
		}
	}
}

func workerUsage(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	a, b := insertWorker(t, st, storedWorker("sess_1", "a")), insertWorker(t, st, storedWorker("sess_1", "b"))
	later := storeNow.Add(time.Second)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Workers().Count(ctx, a, worker.Usage{Up: 1, Down: 2, Connections: 3}, storeNow),
			tx.Workers().Count(ctx, a, worker.Usage{Up: 10, Down: 20, Connections: 30}, later),
			tx.Workers().Count(ctx, b, worker.Usage{Up: 5}, storeNow))
	})
	list := workersOf(t, st, "sess_1")
	if got := list[0]; got.Usage != (worker.Usage{Up: 11, Down: 22, Connections: 33}) || !got.LastUsedAt.Equal(later) {
		t.Errorf("%+v", got)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Workers().Bytes(ctx, []int64{a, b, b + 1000})
		if diff := cmp.Diff(map[int64]int64{a: 33, b: 5}, got); diff != "" {
			t.Error(diff)
		}
		return err
	})
	// What Put writes is not the usage.
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		w := list[0]
		w.Usage = worker.Usage{}
		return tx.Workers().Put(ctx, w)
	})
	if got := workersOf(t, st, "sess_1")[0].Usage.Up; got != 11 {
		t.Errorf("%d up after Put", got)
	}
}

func workerRemoved(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	first := insertWorker(t, st, storedWorker("sess_1", "a"))
	for range 2 {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Workers().Delete(ctx, first) })
	}
	second := insertWorker(t, st, storedWorker("sess_1", "a"))
	if second == first {
		t.Fatal("two workers have one id")
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Workers().Count(ctx, first, worker.Usage{Up: 1}, storeNow),
			tx.Workers().PutHealth(ctx, first, health.State{}, worker.Failure{At: storeNow, Code: "X"}))
	})
	if got := workersOf(t, st, "sess_1")[0]; got.Usage != (worker.Usage{}) || got.LastError.Code != "" {
		t.Errorf("%+v", got)
	}
}

func workerHealthRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	a := insertWorker(t, st, storedWorker("sess_1", "a"))
	insertWorker(t, st, storedWorker("sess_1", "b"))
	var bad health.State
	bad.Observe(health.Event{Type: health.Block, At: storeNow})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Workers().PutHealth(ctx, a, bad, worker.Failure{At: storeNow, Code: "TARGET_TIMEOUT"}),
			tx.Workers().PutHealth(ctx, a, bad, worker.Failure{}))
	})
	for _, names := range [][]string{nil, {"a", "b", "c"}} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Workers().Health(ctx, "sess_1", names...)
			if len(got) != 2 || got[0].ID != a || got[0].Name != "a" || got[0].State != bad || got[1].State != (health.State{}) {
				t.Errorf("%d states", len(got))
			}
			return err
		})
	}
	if got := workersOf(t, st, "sess_1")[0].LastError; got != (worker.Failure{At: storeNow, Code: "TARGET_TIMEOUT"}) {
		t.Errorf("%+v", got)
	}
}

func leaseOfWorkers(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	l := traffic.Lease{SessionID: "sess_1", ID: "l1", Replica: "r1", Granted: 10}
	for _, workers := range [][]traffic.WorkerUse{nil, {{ID: 1, Up: 2, Down: 3, Connections: 4}, {ID: 9, Down: 1 << 50}}} {
		l.Workers = workers
		putLease(t, st, l)
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, _, err := tx.Traffic().Lease(ctx, "sess_1", "l1")
			metered, err2 := tx.Traffic().Metered(ctx, []string{"sess_1"})
			if diff := cmp.Diff(workers, got.Workers); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(workers, metered["sess_1"].Leases["l1"].Workers); diff != "" {
				t.Error(diff)
			}
			return errors.Join(err, err2)
		})
	}
}
