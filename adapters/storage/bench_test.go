package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/ports"
)

// cpu reports the processor time of the whole process for each operation, which
// the wall clock of parallel writers that wait for a disk does not show.
func cpu(b *testing.B) func() {
	b.Helper()
	read := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := read()
	b.ReportAllocs()
	b.ResetTimer()
	return func() {
		b.StopTimer()
		b.ReportMetric(float64((read()-start).Microseconds())/float64(b.N), "cpu-µs/op")
	}
}

func BenchmarkPurchase(b *testing.B) {
	for _, buyers := range []int{1, 32} {
		b.Run(fmt.Sprintf("buyers=%d", buyers), func(b *testing.B) {
			st := openStore(b)
			for i := range 32 {
				addAgent(b, st, fmt.Sprintf("agt_%020d", i), 1_000_000*domain.Dollar)
			}
			var n atomic.Int64
			b.SetParallelism((buyers + 1) / 2)
			defer cpu(b)()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						return purchase(ctx, tx, fmt.Sprintf("agt_%020d", i%32), i)
					})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkReadSession reads at random. With -short it leaves the million out,
// which takes a minute and a gigabyte to make.
func BenchmarkReadSession(b *testing.B) {
	for _, sessions := range []int64{1000, 1_000_000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			if sessions > 1000 && testing.Short() {
				b.Skip("-short")
			}
			st := openStore(b)
			addAgent(b, st, "agt_1", 1_000_000*domain.Dollar)
			manySessions(b, st, sessions)
			var n atomic.Int64
			b.SetParallelism(16)
			defer cpu(b)()
			b.RunParallel(func(pb *testing.PB) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				for pb.Next() {
					id := seededID(n.Add(1) * 7919 % sessions)
					err := st.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						_, err := tx.Sessions().Read(ctx, "agt_1", id)
						return err
					})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// seededID scatters the ids of manySessions, as random ones would be.
func seededID(n int64) string { return fmt.Sprintf("sess_%020d", n*48271%2_147_483_647) }

// manySessions copies one session and its health inside the database.
func manySessions(b *testing.B, st *storage.Store, n int64) {
	b.Helper()
	update(b, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Sessions().Insert(ctx, dynamicSession("agt_1", seededID(0))),
			tx.Health().Put(ctx, seededID(0), busyState()))
	})
	columns := strings.Join(storage.SessionColumns[2:], ", ")
	_, err := st.Writer().Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
		INSERT INTO sessions (id, agent_id, ord, `+columns+`) SELECT printf('sess_%020d', i * 48271 % 2147483647),
		'agt_1', i + 1, `+columns+` FROM n, sessions WHERE ord = 1`, n)
	if err == nil {
		_, err = st.Writer().Exec(`INSERT INTO session_health SELECT s.seq, h.state FROM sessions s, session_health h
			WHERE s.seq > 1 AND h.session = 1`)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func busyState() (s health.State) {
	for i := range 20 {
		s.Report(health.Event{Type: health.Success, StatusCode: 200, HasLatency: true, LatencyMS: 100 + i,
			Host: "example.com", At: now})
	}
	return s
}

// BenchmarkHealthBatch is a telemetry batch of 100 events for 10 sessions: read
// their health, score, write it back, and append the events.
func BenchmarkHealthBatch(b *testing.B) {
	st := openStore(b)
	addAgent(b, st, "agt_1", domain.Dollar)
	var ids []string
	update(b, st, func(ctx context.Context, tx ports.Tx) error {
		for i := range 320 {
			ids = append(ids, fmt.Sprintf("sess_%020d", i*7919))
			if err := tx.Sessions().Insert(ctx, dynamicSession("agt_1", ids[i])); err != nil {
				return err
			}
		}
		return nil
	})
	var n atomic.Int64
	b.SetParallelism(16)
	defer cpu(b)()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			first := int(n.Add(10)) % 310
			err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				batch := ids[first : first+10]
				states, err := tx.Health().Get(ctx, "agt_1", batch)
				if err != nil {
					return err
				}
				for _, id := range batch {
					state := states[id].State
					for range 10 {
						state.Report(health.Event{Type: health.Success, StatusCode: 200, Host: "example.com", At: now})
					}
					if err := tx.Health().Put(ctx, id, state); err != nil {
						return err
					}
					if err := tx.Events().Append(ctx, id, someEvents(10)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkEventsAppend(b *testing.B) {
	st := openStore(b)
	addAgent(b, st, "agt_1", domain.Dollar)
	update(b, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1"))
	})
	batch := someEvents(100)
	b.SetParallelism(16)
	defer cpu(b)()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			err := st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				return tx.Events().Append(ctx, "sess_1", batch)
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func someEvents(n int) []eventlog.Event {
	hosts := []string{"example.com", "shop.example.org", "api.example.net"}
	list := make([]eventlog.Event, n)
	for i := range list {
		list[i] = eventlog.Event{ID: fmt.Sprintf("evt_%020d", i), At: now.Add(time.Duration(i) * time.Microsecond),
			Source: eventlog.Agent, Type: "success", TargetHost: hosts[i%3], StatusCode: 200, LatencyMS: 120 + i}
	}
	return list
}
