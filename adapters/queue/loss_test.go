package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// What River runs on the pool finds a loss as units do: however many connections are lost, the others are
// replaced once, and jobs run on.
func TestJobsRunOnAfterALoss(t *testing.T) {
	l, url := link.New(t, pg.Database(t), 0)
	w := newWorld(t, storage.Config{URL: storage.URL(url)})
	var ran atomic.Int32
	q := w.queue(queue.Handlers{DriveOrders: func(context.Context, string) error { ran.Add(1); return nil }})
	ok(t, q.Start(t.Context()))
	w.until("it leads", q.Leads)
	begin := w.losses()
	for n, open := range []int{1, 10, 20} {
		w.fill(open)
		l.Drop()
		w.until("River finds the loss", func() bool { return w.losses() > begin+float64(n) })
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: fmt.Sprint("sess_", n)})
		w.until("the job runs", func() bool { return int(ran.Load()) == n+1 })
	}
	ok(t, q.Stop(context.Background()))
	if n := w.losses() - begin; n != 3 {
		t.Errorf("three losses counted as %v", n)
	}
}

// fill has n connections open that nothing uses.
func (w *world) fill(n int) {
	w.Helper()
	var list []*pgxpool.Conn
	for range n {
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Minute)
		c, err := w.st.Pool().Acquire(ctx)
		cancel()
		ok(w.T, err)
		list = append(list, c)
	}
	for _, c := range list {
		c.Release()
	}
}

// losses is how often the connections of the pool were replaced.
func (w *world) losses() float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	ok(w.T, registry.Register(w.st))
	families, err := registry.Gather()
	ok(w.T, err)
	for _, f := range families {
		if f.GetName() == "agentproxy_database_pool_losses_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	w.Fatal("the losses are not shown")
	return 0
}
