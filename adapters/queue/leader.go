package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// PeriodicTask is work that is repeated: the leading replica inserts its job, and any replica runs it. No job is
// inserted while one is unfinished.
type PeriodicTask struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context) error
}

// term is the context while which this process leads. On PostgreSQL River elects a leader: its hook gives the
// context of the leader's periodic jobs, which ends a second before another can be elected. A leader that dies
// is followed after 15 to 21 seconds. A file belongs to one process, which leads from its start.
type term struct {
	ctx atomic.Pointer[context.Context]
}

// hook begins the term when River elected this process.
func (t *term) hook() rivertype.Hook {
	return river.HookPeriodicJobsStartFunc(func(ctx context.Context, _ *rivertype.HookPeriodicJobsStartParams) error {
		t.begin(ctx)
		return nil
	})
}

func (t *term) begin(ctx context.Context) { t.ctx.Store(&ctx) }

func (t *term) resign() { t.ctx.Store(nil) }

// Leads reports whether this process is the replica for work that one replica is enough for. The work
// must be correct when two do it.
func (q *Queue) Leads() bool {
	ctx := q.term.ctx.Load()
	return ctx != nil && (*ctx).Err() == nil
}

// unfinished are the states of a job that will run.
var unfinished = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// periodic returns the periodic jobs of River's leader.
func periodic(tasks []PeriodicTask) []*river.PeriodicJob {
	jobs := make([]*river.PeriodicJob, len(tasks))
	for i, p := range tasks {
		insert := func() (river.JobArgs, *river.InsertOpts) {
			return runPass{p.Name}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
		}
		jobs[i] = river.NewPeriodicJob(river.PeriodicInterval(p.Every), insert, nil)
	}
	return jobs
}
