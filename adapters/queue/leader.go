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

// River elects a leader, which alone calls the constructors of periodic jobs. A constructor that
// returns none extends the term in which this process may lead, without a write. A process that is
// dead or disconnected stops leading after a term; a new leader is elected about 15 seconds later,
// so two lead at once only between the loss of an election and the end of a term.
const (
	leadEvery = time.Second
	leadFor   = 3 * time.Second
)

// term is the time until which this process leads.
type term struct{ until atomic.Pointer[time.Time] }

func (t *term) extend(now time.Time) {
	until := now.Add(leadFor)
	t.until.Store(&until)
}

func (t *term) end() { t.until.Store(nil) }

func (t *term) holds(now time.Time) bool {
	until := t.until.Load()
	return until != nil && now.Before(*until)
}

// Leads reports whether this process is the replica for work that one replica is enough for. The work
// must be correct when two do it.
func (q *Queue) Leads() bool { return q.term.holds(time.Now()) }

// unfinished are the states of a job that will run.
var unfinished = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// periodic returns the periodic jobs of River's leader.
func periodic(passes []PeriodicTask, t *term) []*river.PeriodicJob {
	lead := func() (river.JobArgs, *river.InsertOpts) {
		t.extend(time.Now())
		return nil, nil
	}
	jobs := []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(leadEvery), lead, &river.PeriodicJobOpts{RunOnStart: true}),
	}
	for _, p := range passes {
		insert := func() (river.JobArgs, *river.InsertOpts) {
			return runPass{p.Name}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
		}
		jobs = append(jobs, river.NewPeriodicJob(river.PeriodicInterval(p.Every), insert, nil))
	}
	return jobs
}
