package queue

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"
)

// TestMain runs many tests at the same time: they wait for River's intervals and compute little.
func TestMain(m *testing.M) {
	testOnly = true
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Beat stores a heartbeat at a monotonic time.
func (q *Queue) Beat(ctx context.Context, now time.Time) error { return q.heart.beat(ctx, now) }
