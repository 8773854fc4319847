package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"agentproxy/ports"
)

// worker runs the jobs of one kind.
type worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	do      func(ctx context.Context, args T) error
	timeout time.Duration // 0 means jobTimeout
	observe Observer      // or nil
	trace   func(ctx context.Context, kind, traceparent string) (context.Context, func(error))
	log     *slog.Logger
}

// Timeout returns how long a job may take.
func (w worker[T]) Timeout(*river.Job[T]) time.Duration { return w.timeout }

// errPanicked is the error of a job that panics. It omits the panic's value, which may hold a secret:
// errors are stored with their jobs.
var errPanicked = errors.New("the job panicked")

// Work runs a job. It returns an error if the job panics.
func (w worker[T]) Work(ctx context.Context, j *river.Job[T]) (err error) {
	if w.observe != nil {
		began := time.Now()
		defer func() { w.observe(observedKind(j.Args), resultOf(err), time.Since(began)) }()
	}
	if parent := traceparent(j.JobRow); parent != "" && w.trace != nil {
		var end func(error)
		ctx, end = w.trace(ctx, observedKind(j.Args), parent)
		defer func() {
			if resultOf(err) == "failed" {
				end(err)
			} else {
				end(nil)
			}
		}()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s", errPanicked, kindOfPanic(p))
			w.log.Error("job panicked", "kind", j.Kind, "id", j.ID, "panic", kindOfPanic(p), "stack", string(debug.Stack()))
		}
	}()
	return w.do(ctx, j.Args)
}

// tracedFor bounds how long after its insertion the runs of a job belong to the trace of what inserted
// it: one that is put off again and again would make that trace endless.
const tracedFor = 5 * time.Minute

// traceparent returns that of what inserted a job, "" for none.
func traceparent(j *rivertype.JobRow) string {
	var metadata struct {
		Traceparent string `json:"traceparent"`
	}
	if len(j.Metadata) <= len("{}") || time.Since(j.CreatedAt) > tracedFor ||
		json.Unmarshal(j.Metadata, &metadata) != nil {
		return ""
	}
	return metadata.Traceparent
}

// observedKind returns the kind of a job, and the name of a periodic task.
func observedKind(args river.JobArgs) string {
	if pass, ok := args.(runPass); ok {
		return pass.Name
	}
	return args.Kind()
}

func resultOf(err error) string {
	_, later := errors.AsType[*river.JobSnoozeError](err)
	switch {
	case err == nil:
		return "ok"
	case later:
		return "later"
	}
	return "failed"
}

// kindOfPanic returns what may be logged of a panic: the error of the Go runtime, or the type of any
// other value, which may hold a secret.
func kindOfPanic(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", p)
}

// failures handles failed jobs.
type failures struct {
	log    *slog.Logger
	giveUp Handler
}

var _ river.ErrorHandler = failures{}

// HandleError logs the first failure of a job and the last, after which it is
// parked until the operator decides. A session that cannot be delivered is
// given up then.
func (f failures) HandleError(ctx context.Context, j *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	parked := j.Attempt >= j.MaxAttempts
	attrs := []any{"kind", j.Kind, "id", j.ID, "subject", subject(j.EncodedArgs), "attempt", j.Attempt, "err", err}
	switch {
	case parked:
		f.log.Error("job parked", attrs...)
	case j.Attempt == 1:
		f.log.Warn("job failed", attrs...)
	}
	id := subject(j.EncodedArgs)
	if !parked || !drives(j.Kind) || f.giveUp == nil || id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobTimeout)
	defer cancel()
	if err := f.giveUp(ctx, id); err != nil {
		f.log.Error("a session that cannot be delivered was not given up", "session_id", id, "err", err)
	}
	return nil
}

// drives reports whether a job of a kind drives the orders of a session.
func drives(kind string) bool {
	return kind == driveOrders{}.Kind() || slices.Contains(driveOrders{}.KindAliases(), kind)
}

// HandlePanic logs a panic outside a handler; those of handlers are errors.
func (f failures) HandlePanic(ctx context.Context, j *rivertype.JobRow, p any, _ string) *river.ErrorHandlerResult {
	return f.HandleError(ctx, j, fmt.Errorf("%w: %s", errPanicked, kindOfPanic(p)))
}

// requeued maps ports.RequeueAfter to River's snooze.
func requeued(err error) error {
	if later, ok := errors.AsType[ports.RequeueAfter](err); ok {
		return river.JobSnooze(max(time.Duration(later), time.Millisecond))
	}
	return err
}

// backoff retries after 2, 4, 8 … seconds, at most longestRetry.
type backoff struct{}

// NextRetry returns when a failed job is retried.
func (backoff) NextRetry(j *rivertype.JobRow) time.Time {
	return time.Now().UTC().Add(min(time.Second<<min(len(j.Errors), 10), longestRetry))
}
