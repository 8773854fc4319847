package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentproxy/adapters/queue"
	"agentproxy/ports"
)

// A job that was inserted by what is traced runs in its trace, which records a failure, but not a job that
// is put off.
func TestAJobRunsInTheTraceOfItsUnit(t *testing.T) {
	type run struct {
		kind, parent string
		err          error
	}
	type inTrace struct{}
	onEachStore(t, func(w *world) {
		runs := make(chan run, 8)
		untraced := make(chan bool, 8)
		tries := 0
		w.begun(queue.Handlers{
			Trace: func(ctx context.Context, kind, parent string) (context.Context, func(error)) {
				return context.WithValue(ctx, inTrace{}, true), func(err error) { runs <- run{kind, parent, err} }
			},
			DriveOrders: func(ctx context.Context, id string) error {
				if id == "sess_plain" {
					untraced <- ctx.Value(inTrace{}) == nil
					return nil
				}
				if tries++; tries == 1 {
					return ports.RequeueAfter(time.Millisecond)
				}
				if ctx.Value(inTrace{}) == nil {
					return nil
				}
				return errors.New("down")
			},
		})
		w.insert(ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_plain"},
			ports.Job{Kind: ports.DriveOrdersJob, SessionID: "sess_1", Traceparent: `00-"1"-01`})
		if !<-untraced {
			w.Error("a job of an untraced unit is traced")
		}
		for n, failed := range []bool{false, true} {
			var got run
			select {
			case got = <-runs:
			case <-time.After(time.Minute):
				w.Fatal("no job is traced")
			}
			if got.kind != ports.DriveOrdersJob || got.parent != `00-"1"-01` || (got.err != nil) != failed {
				w.Errorf("run %d was traced as %+v", n, got)
			}
		}
	})
}
