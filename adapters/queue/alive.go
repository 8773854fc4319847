package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Replicas on PostgreSQL store a heartbeat each beatEvery. Every one of them returns the running jobs
// of those that stored none for deadAfter to the queue, where River itself would wait for rescueAfter.
// So a job of a dead process runs again within deadAfter, two heartbeats and a poll: 17 seconds at
// most. A job of a process that is cut off from the database and not dead may run twice, as any job.
const (
	beatEvery = 2 * time.Second
	deadAfter = 12 * time.Second
	// keepDead is how long the heartbeat of a dead process is kept.
	keepDead = 24 * time.Hour
)

// newReplica returns an id for the jobs of this process. It begins with the name of the host, for
// operators.
func newReplica() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%.60s_%s", host, rand.Text()[:13])
}

// heartbeat stores the heartbeats of this process and looks for dead ones.
type heartbeat struct {
	pool *pgxpool.Pool
	id   string
	log  *slog.Logger

	// The first heartbeat and the last of those that followed each other without a gap. After an
	// outage of the database every process looks dead: a witness was connected itself for as long
	// as the dead was not.
	since, last time.Time
}

// The time is that of the database, in microseconds.
const (
	nowMicros = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	storeBeat = `INSERT INTO replicas (id, seen_at) VALUES ($1, ` + nowMicros + `)
		ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`
	// Jobs without an attempt left stay: River's rescuer parks them.
	reclaimJobs = `UPDATE river_job SET state = 'available'
		WHERE state = 'running' AND attempt < max_attempts AND attempted_at < clock_timestamp() - make_interval(secs => $1)
		AND attempted_by[array_upper(attempted_by, 1)] NOT IN (
			SELECT id FROM replicas WHERE seen_at > ` + nowMicros + ` - $1::bigint * 1000000)`
	forgetDead = `DELETE FROM replicas WHERE seen_at < ` + nowMicros + ` - $1::bigint * 1000000`
)

// beat stores a heartbeat and takes back the jobs of dead replicas. now is a monotonic time.
func (h *heartbeat) beat(ctx context.Context, now time.Time) error {
	if _, err := h.pool.Exec(ctx, storeBeat, h.id); err != nil {
		return fmt.Errorf("store the heartbeat: %w", err)
	}
	if h.last.IsZero() || now.Sub(h.last) > deadAfter/2 {
		h.since = now
	}
	h.last = now
	if now.Sub(h.since) < deadAfter {
		return nil
	}
	taken, err := h.pool.Exec(ctx, reclaimJobs, int(deadAfter.Seconds()))
	if err != nil {
		return fmt.Errorf("take back the jobs of dead replicas: %w", err)
	}
	if n := taken.RowsAffected(); n > 0 {
		h.log.Warn("took back the jobs of a dead replica", "jobs", n)
	}
	if _, err := h.pool.Exec(ctx, forgetDead, int(keepDead.Seconds())); err != nil {
		return fmt.Errorf("delete dead replicas: %w", err)
	}
	return nil
}

// run beats until the context ends, and removes the heartbeat then: all jobs have ended.
func (h *heartbeat) run(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	failing := false
	for ctx.Err() == nil {
		// One that is under way when the context ends is awaited: the server could else store it after its removal.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatEvery)
		err := h.beat(within, time.Now())
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			h.log.Warn("the heartbeat of this replica is late: its jobs may run again on another one", "err", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	dial := h.pool.Config().ConnConfig.ConnectTimeout
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(beatEvery, dial))
	defer cancel()
	_, _ = h.pool.Exec(within, "DELETE FROM replicas WHERE id = $1", h.id)
}

// background runs a function until stop. The zero value runs none.
type background struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (b *background) start(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.done.Go(func() { run(ctx) })
}

func (b *background) stop() {
	if b.cancel != nil {
		b.cancel()
	}
	b.done.Wait()
}
