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
var JobTable = &rows.Inserts[ports.Job]{Order: work.JobOrder}

// Insert keeps a job with the time from which on it runs, if that is to come: units of a batch have clocks of their
// own, and a job with a time waits for the leader that looks for those that are due.
func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	j.Traceparent = cmp.Or(r.traceparent(ctx), j.Traceparent)
	if j.At, j.After = cmp.Or(j.At, now.Add(j.After)), 0; !j.At.After(now) {
		j.At = time.Time{}
	}
	return JobTable.Insert(r.Set, j)
}
