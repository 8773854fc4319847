package storage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// BenchmarkReadsBesideAStorm is how long one agent waits for its sessions, alone and while 100
// callers of another buy, report, read and end sessions: the 99th percentile of each, and how many
// times the first the second is. From memory is how GET /v1/sessions/{id} reads, by a round trip
// how lists and balances do. The others show what the machine itself does to a caller: a hash waits
// for nothing, and a bare read is SELECT 1 on a connection of its own, which waits in no queue.
func BenchmarkReadsBesideAStorm(b *testing.B) {
	for _, from := range []string{"hash", "memory", "bare", "trip"} {
		b.Run("from="+from, func(b *testing.B) {
			url := pg.Database(b)
			readsBesideAStorm(b, openURL(b, url), stormReads(b, url, from))
		})
	}
}

// stormReads returns how the quiet agent reads.
func stormReads(b *testing.B, url, from string) func(*storage.Store) error {
	switch from {
	case "hash":
		text := make([]byte, 4<<10)
		return func(*storage.Store) error { sha256.Sum256(text); return nil }
	case "bare":
		conn, err := pgx.Connect(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close(context.Background()) })
		return func(*storage.Store) error {
			var one int
			return conn.QueryRow(context.Background(), "SELECT 1").Scan(&one)
		}
	}
	named := ports.ReadSet{Agent: "agt_quiet", Sessions: []string{sessionID(0)},
		Recent: from == "memory"}
	return func(st *storage.Store) error {
		return st.View(context.Background(), named, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Read(ctx, "agt_quiet", sessionID(0))
			return err
		})
	}
}

func readsBesideAStorm(b *testing.B, st *storage.Store, read func(*storage.Store) error) {
	st.Remember()
	addAgent(b, st, "agt_quiet", domain.Dollar)
	addAgent(b, st, "agt_storm", 1_000_000*domain.Dollar)
	if err := buyAhead(b.Context(), st, "agt_quiet", 0, nothing); err != nil {
		b.Fatal(err)
	}
	reads := func() time.Duration {
		took := make([]time.Duration, b.N)
		for i := range took {
			began := time.Now()
			if err := read(st); err != nil {
				b.Fatal(err)
			}
			took[i] = time.Since(began)
			time.Sleep(time.Millisecond)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	quiet := reads()
	var storm sync.WaitGroup
	var n atomic.Int64
	var ended atomic.Bool
	for range 100 {
		storm.Go(func() {
			for !ended.Load() {
				if err := stormOnce(st, n.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	before := runnable()
	b.ResetTimer()
	beside := reads()
	b.StopTimer()
	b.ReportMetric(before.until(0.99, runnable())*1e6, "sched-p99-µs")
	ended.Store(true)
	storm.Wait()
	b.ReportMetric(float64(quiet.Microseconds()), "quiet-p99-µs")
	b.ReportMetric(float64(beside.Microseconds()), "storm-p99-µs")
	b.ReportMetric(float64(beside)/float64(quiet), "ratio")
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "rounds/s")
}

// waits is how long goroutines that could run waited for a processor, as the runtime counts it.
type waits struct{ *metrics.Float64Histogram }

func runnable() waits {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	return waits{sample[0].Value.Float64Histogram()}
}

// until returns the upper bound in seconds of a part of the waits that were counted after w.
func (w waits) until(part float64, after waits) float64 {
	var all, seen uint64
	for i, n := range after.Counts {
		all += n - w.Counts[i]
	}
	for i, n := range after.Counts {
		if seen += n - w.Counts[i]; float64(seen) >= part*float64(all) {
			return after.Buckets[i+1]
		}
	}
	return 0
}

// stormOnce buys a session, reports of it, reads it and ends it.
func stormOnce(st ports.Store, n int64) error {
	ctx, id := context.Background(), sessionID(n)
	if err := buyAhead(ctx, st, "agt_storm", n, nothing); err != nil {
		return err
	}
	_, err := readAhead(ctx, st, "agt_storm", id)
	return errors.Join(err, reportAhead(ctx, st, "agt_storm", id), endAhead(ctx, st, "agt_storm", id))
}
