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

// Insert keeps a job with the time from which on it runs: units of a batch have clocks of their own.
func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	j.Traceparent = cmp.Or(r.traceparent(ctx), j.Traceparent)
	j.At, j.After = cmp.Or(j.At, now.Add(j.After)), 0
	return JobTable.Insert(r.Set, j)
}
