package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// hostOff is the clock of a host that is wrong by a time.
func hostOff(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}

// openReplica opens a database as a process whose host's clock is wrong.
func openReplica(t testing.TB, config storage.Config) *storage.Store {
	t.Helper()
	st, err := storage.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// The contract also holds when PostgreSQL's own clock counts, as it does in the service.
func TestContractByTheServersClock(t *testing.T) {
	contract.Leases(t, func(t *testing.T) ports.Store {
		return openReplica(t, storage.Config{URL: storage.URL(pg.Database(t)), Host: hostOff(24 * time.Hour)})
	})
}

// A replica whose clock is wrong writes leases that are as old as they are, for every replica.
func TestReplicasAgreeOnTheAgeOfLeases(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -10 * time.Minute, -20 * time.Second, 20 * time.Second, 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			url := storage.URL(pg.Database(t))
			right, wrong := openReplica(t, storage.Config{URL: url}), openReplica(t, storage.Config{URL: url, Host: hostOff(off)})
			addAgent(t, right, "agt_1", 1_000_000)
			update(t, right, func(ctx context.Context, tx ports.Tx) error {
				return tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1"))
			})
			for _, writer := range []*storage.Store{right, wrong} {
				update(t, writer, func(ctx context.Context, tx ports.Tx) error {
					return tx.Traffic().PutLease(ctx, traffic.Lease{SessionID: "sess_1", ID: "l1"})
				})
				for _, reader := range []*storage.Store{right, wrong} {
					view(t, reader, func(ctx context.Context, tx ports.Tx) error {
						l, _, err := tx.Traffic().Lease(ctx, "sess_1", "l1")
						if l.Idle < 0 || l.Idle > traffic.StopAfter {
							t.Errorf("a new lease is %s old", l.Idle)
						}
						return err
					})
				}
			}
		})
	}
}

func TestTheClockOfAReplicaIsTheServers(t *testing.T) {
	var log bytes.Buffer
	off := 10 * time.Minute
	st := openReplica(t, storage.Config{URL: storage.URL(pg.Database(t)), Host: func() time.Time { return time.Now().Add(off) },
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	// The server of the tests runs on this machine, so its clock is the right one.
	agrees := func(when string) {
		t.Helper()
		if d := time.Until(st.Clock().Now()).Abs(); d > storage.MostSkew {
			t.Errorf("%s the clock is %s off", when, d)
		}
	}
	agrees("with a host ahead")
	if skew := st.ClockSkew(); (skew - off).Abs() > storage.MostSkew {
		t.Errorf("the skew is %s", skew)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	off = -24 * time.Hour // the host's clock is set, wrong again
	agrees("before the next reading")
	for range 2 {
		if err := st.MeasureClock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	agrees("with a host behind")
	off = 0
	if err := st.MeasureClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 || st.ClockSkew().Abs() > storage.MostSkew {
		t.Errorf("once it is right the skew is %s, and the log:\n%s", st.ClockSkew(), log.String())
	}
}

// On SQLite a lease is as old as what passed, whatever the wall clock was set to meanwhile.
func TestAStepOfTheWallClockAgesNoLease(t *testing.T) {
	off := time.Duration(0)
	st := openReplica(t, storage.Config{Path: sqlitetest.File(t), Host: func() time.Time { return time.Now().Add(off) }})
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	addAgent(t, st, "agt_1", 1_000_000)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1")); err != nil {
			return err
		}
		return tx.Traffic().PutLease(ctx, traffic.Lease{SessionID: "sess_1", ID: "l1"})
	})
	for _, off = range []time.Duration{time.Hour, -time.Hour} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			l, _, err := tx.Traffic().Lease(ctx, "sess_1", "l1")
			if l.Idle < 0 || l.Idle > traffic.StopAfter {
				t.Errorf("the wall clock was set by %s, and the lease is %s old", off, l.Idle)
			}
			return err
		})
		if d := time.Until(st.Clock().Now()) - off; d.Abs() > storage.MostSkew {
			t.Errorf("the clock is %s from the host's", d)
		}
	}
}

// A clock that is far ahead of the last row when the service starts goes on from there until the chain is where it is.
func TestAClockFarAheadIsHeld(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		clock := st.Clock().Now()
		last := clock.Add(-40 * 24 * time.Hour)
		mark := func(at time.Time) {
			execAll(t, st, fmt.Sprintf(`INSERT INTO recharge_marks (network, final_number, final_time, latest, read_at) VALUES ('tron-x', 7, %d, 7, %d)
				ON CONFLICT (network) DO UPDATE SET final_time = excluded.final_time`, at.UnixMicro(), last.UnixMicro()))
		}
		measured := func(held bool) time.Duration {
			t.Helper()
			if err := st.MeasureClock(t.Context()); err != nil || st.ClockHeld() != held {
				t.Errorf("held is %v, %v", st.ClockHeld(), err)
			}
			return st.Clock().Now().Sub(last)
		}
		if err := st.HoldClock(t.Context(), "tron-x"); err != nil || st.ClockHeld() {
			t.Fatalf("a new database holds the clock: %v", err)
		}
		mark(last)
		if err := st.HoldClock(t.Context(), ""); err != nil || st.ClockHeld() {
			t.Fatalf("without a chain the clock is held: %v", err)
		}
		if err := st.HoldClock(t.Context(), "tron-x"); err != nil {
			t.Fatal(err)
		}
		if since := measured(true); since < 0 || since > 24*time.Hour {
			t.Errorf("it goes on %s after the last row", since)
		}
		mark(clock.Add(-24 * time.Hour))
		measured(true)
		mark(clock.Add(-time.Minute))
		if since := measured(false); since < 39*24*time.Hour {
			t.Errorf("once the chain agrees it is %s after the last row", since)
		}
	})
}
