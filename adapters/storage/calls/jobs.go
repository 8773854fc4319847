package calls

import (
	"cmp"
	"context"
	"time"

	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// jobs inserts jobs with a unit, or with its batch.
type jobs struct {
	*work.Unit
	traceparent func(context.Context) string
}

// Jobs returns the jobs that a unit starts. Each is part of the trace that traceparent returns.
func Jobs(u *work.Unit, traceparent func(context.Context) string) ports.Jobs {
	return jobs{u, traceparent}
}

// JobTable has the jobs of units, which are inserted once the units have run.
var JobTable = &rows.Inserts[Job]{Order: work.JobOrder}

// Job is a job with the time of the unit that inserts it.
type Job struct {
	ports.Job
	Now time.Time
}

// JobsOf returns the jobs of a list, and the latest time of their units: what is due by then has no time to wait for.
func JobsOf(list []Job) (jobs []ports.Job, now time.Time) {
	for _, j := range list {
		jobs = append(jobs, j.Job)
		if j.Now.After(now) {
			now = j.Now
		}
	}
	return jobs, now
}

// Insert keeps a job with the time from which on it runs, if that is to come: units of a batch have clocks of their
// own, and a job with a time waits for the leader that looks for those that are due.
func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	j.Traceparent = cmp.Or(r.traceparent(ctx), j.Traceparent)
	j.At, j.After = cmp.Or(j.At, now.Add(j.After)), 0
	return JobTable.Insert(r.Set, Job{j, now})
}
