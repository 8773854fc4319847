package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Pass is work that nobody asks for: one replica begins it every so often, and
// any does it. It does not begin while one is under way or fails.
type Pass struct {
	Name    string
	Every   time.Duration
	AtStart bool // also when a replica begins to lead
	Run     func(ctx context.Context) error
}

// River elects a leader, which alone calls what makes periodic jobs. A call that
// makes none prolongs the term in which this process may lead, without writing
// anything. A process that is dead or cut off leads no more after a term; a new
// leader is elected about 15 seconds later, so two lead at once only in between
// the loss of an election and the end of a term.
const (
	leadEvery = time.Second
	leadFor   = 3 * time.Second
)

// term is until when this process leads.
type term struct{ until atomic.Pointer[time.Time] }

func (t *term) prolong(now time.Time) {
	until := now.Add(leadFor)
	t.until.Store(&until)
}

func (t *term) end() { t.until.Store(nil) }

func (t *term) holds(now time.Time) bool {
	until := t.until.Load()
	return until != nil && now.Before(*until)
}

// Leads reports whether this process is the one replica that does what one alone
// need do. Nothing may go wrong when two do it.
func (q *Queue) Leads() bool { return q.term.holds(time.Now()) }

// unfinished are the states of a job that will run.
var unfinished = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
	rivertype.JobStateRetryable, rivertype.JobStateScheduled}

// periodic is what River's leader does every so often.
func periodic(passes []Pass, t *term) []*river.PeriodicJob {
	lead := func() (river.JobArgs, *river.InsertOpts) {
		t.prolong(time.Now())
		return nil, nil
	}
	jobs := []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(leadEvery), lead, &river.PeriodicJobOpts{RunOnStart: true}),
	}
	for _, p := range passes {
		insert := func() (river.JobArgs, *river.InsertOpts) {
			return runPass{p.Name}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
		}
		jobs = append(jobs, river.NewPeriodicJob(river.PeriodicInterval(p.Every), insert,
			&river.PeriodicJobOpts{RunOnStart: p.AtStart}))
	}
	return jobs
}
