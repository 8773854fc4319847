package storage_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/ports"
)

// BenchmarkReadsBesideAStorm is how long one agent waits for its sessions, alone and while 100
// callers of another buy, report, read and end sessions: the 99th percentile of each, and how many
// times the first the second is. From memory is how GET /v1/sessions/{id} reads, by a round trip
// how lists and balances do.
func BenchmarkReadsBesideAStorm(b *testing.B) {
	for _, from := range []string{"memory", "trip"} {
		b.Run("from="+from, func(b *testing.B) { readsBesideAStorm(b, from == "memory") })
	}
}

func readsBesideAStorm(b *testing.B, memory bool) {
	st := openPostgres(b)
	st.Remember()
	addAgent(b, st, "agt_quiet", domain.Dollar)
	addAgent(b, st, "agt_storm", 1_000_000*domain.Dollar)
	if err := buyAhead(b.Context(), st, "agt_quiet", 0, nothing); err != nil {
		b.Fatal(err)
	}
	named := ports.WithReadSet(context.Background(), ports.ReadSet{Agent: "agt_quiet", Sessions: []string{sessionID(0)},
		Recent: memory})
	reads := func() time.Duration {
		took := make([]time.Duration, b.N)
		for i := range took {
			began := time.Now()
			err := st.View(named, func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Sessions().Read(ctx, "agt_quiet", sessionID(0))
				return err
			})
			if err != nil {
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
	b.ResetTimer()
	beside := reads()
	b.StopTimer()
	ended.Store(true)
	storm.Wait()
	b.ReportMetric(float64(quiet.Microseconds()), "quiet-p99-µs")
	b.ReportMetric(float64(beside.Microseconds()), "storm-p99-µs")
	b.ReportMetric(float64(beside)/float64(quiet), "ratio")
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "rounds/s")
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
