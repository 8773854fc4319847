package nats_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/nats"
	"agentproxy/app/telemetry"
	"agentproxy/test/apptest"
	"agentproxy/test/natstest"
	"agentproxy/test/pg"
)

// BenchmarkBatch reports batches from 64 callers of 32 agents with a session each, straight to
// PostgreSQL and through the queue.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{20, 100} {
		for _, way := range []string{"direct", "queued"} {
			b.Run(fmt.Sprintf("%s/%d", way, size), func(b *testing.B) { benchmarkBatch(b, way == "queued", size) })
		}
	}
}

func benchmarkBatch(b *testing.B, queued bool, size int) {
	w, done := apptest.Start(b, apptest.Options{Database: pg.Database(b), System: true})
	defer done()
	if queued {
		q, err := nats.New(nats.Config{URL: natstest.Start(b).URL()})
		apptest.OK(b, err)
		defer q.Close()
		w.Telemetry.WithQueue(q)
		defer fold(q, w.Telemetry)()
	}
	agents, batches := make([]string, 32), make([][]telemetry.ReportedEvent, 32)
	for i := range agents {
		agents[i] = w.Register()
		id := w.Buy(agents[i], apptest.Local).ID
		for n := range size {
			batches[i] = append(batches[i], reported(id, []string{"success", "success", "timeout"}[n%3], fmt.Sprintf("h%d.test", n%7)))
		}
	}
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			i := int(next.Add(1)) % len(agents)
			if _, err := w.Telemetry.Batch(b.Context(), agents[i], batches[i]); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
}
