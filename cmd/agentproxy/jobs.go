package main

import (
	"context"
	"strconv"
	"time"

	"agentproxy/adapters/queue"
	"agentproxy/cmd/internal/wire"
)

type jobsCmd struct {
	List    jobsListCmd    `cmd:"" help:"List jobs, newest first; those that failed every time are discarded, and kept for 30 days."`
	Retry   jobsRetryCmd   `cmd:"" help:"Run a job again at once."`
	Discard jobsDiscardCmd `cmd:"" help:"Remove a job for good."`
}

type jobsListCmd struct {
	State string `enum:",discarded,retryable,running,available,scheduled,completed" default:"" help:"Only jobs of this state."`
	Kind  string `help:"Only jobs of this kind, such as provision."`
	Limit int    `default:"100" help:"How many, 1 to 10000."`
}

// Run lists jobs.
func (c jobsListCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, q *queue.Queue) error {
		list, err := q.List(ctx, queue.Filter{State: c.State, Kind: c.Kind, Limit: min(max(c.Limit, 1), 10_000)})
		if err != nil {
			return err
		}
		t := table{columns: []string{"job_id", "kind", "state", "subject", "attempts", "max_attempts", "scheduled_at",
			"created_at", "error"}}
		for _, j := range list {
			t.add(j.ID, j.Kind, j.State, j.Subject, j.Attempt, j.MaxAttempts, j.ScheduledAt.Format(time.RFC3339),
				j.CreatedAt.Format(time.RFC3339), j.Error)
		}
		return t.print(k)
	})
}

type jobsRetryCmd struct {
	noted
	JobID int64 `arg:"" name:"JOB_ID"`
}

// Run replays a job.
func (c jobsRetryCmd) Run(k *kit) error {
	action := c.action("jobs retry", strconv.FormatInt(c.JobID, 10))
	return do(k, action, func(ctx context.Context, jobs *wire.Jobs) error {
		j, err := jobs.Retry(ctx, c.JobID)
		if err != nil {
			return err
		}
		return k.record("job_id", j.ID, "kind", j.Kind, "state", j.State, "subject", j.Subject)
	})
}

type jobsDiscardCmd struct {
	noted
	JobID int64 `arg:"" name:"JOB_ID"`
}

// Run removes a job.
func (c jobsDiscardCmd) Run(k *kit) error {
	action := c.action("jobs discard", strconv.FormatInt(c.JobID, 10))
	return do(k, action, func(ctx context.Context, jobs *wire.Jobs) error {
		j, err := jobs.Discard(ctx, c.JobID)
		if err != nil {
			return err
		}
		return k.record("job_id", j.ID, "kind", j.Kind, "state", "removed", "subject", j.Subject)
	})
}
