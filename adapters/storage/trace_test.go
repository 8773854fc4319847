package storage_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// tracer notes statements by the name of the unit whose context they have.
type tracer struct {
	mu    sync.Mutex
	notes map[string][]string
}

type unitName struct{}

func (r *tracer) Statement(ctx context.Context, statement string, _ time.Time, _ error) {
	name, _ := ctx.Value(unitName{}).(string)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[name] = append(r.notes[name], statement)
}

func (r *tracer) Traceparent(ctx context.Context) string {
	name, _ := ctx.Value(unitName{}).(string)
	return name
}

// of returns what was noted of a unit.
func (r *tracer) of(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.notes[name], "\n")
}

// Statements are noted for the unit that they are of, whichever goroutine and transaction they run in, and
// without their arguments.
func TestStatementsAreNotedForTheirUnit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]storage.Config{
		"sqlite":   {Path: sqlitetest.File(t)},
		"postgres": {URL: storage.URL(pg.Database(t))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &tracer{notes: map[string][]string{}}
			c.Trace, c.Now = notes, func() time.Time { return now }
			st, err := storage.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if err := st.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			inserted := map[string]string{}
			st.SetJobInserter(func(_ context.Context, _ storage.JobTx, jobs []ports.Job, _ time.Time) error {
				mu.Lock()
				defer mu.Unlock()
				for _, j := range jobs {
					inserted[j.SessionID] = j.Traceparent
				}
				return nil
			})
			addAgent(t, st, "agt_1", 1e9)
			buy := func(unit string, n int64) {
				ctx := context.WithValue(t.Context(), unitName{}, unit)
				err := buyAhead(ctx, st, "agt_1", n, func(ctx context.Context, tx ports.Tx) error {
					return tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DriveOrdersJob, SessionID: unit}, now)
				})
				if err != nil {
					t.Error(err)
				}
			}
			var all sync.WaitGroup
			for n, unit := range []string{"first", "second"} {
				all.Go(func() { buy(unit, int64(n+1)) })
			}
			all.Wait()
			ctx := context.WithValue(t.Context(), unitName{}, "list")
			err = st.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Agents().Get(ctx, "agt_1")
				return err
			})
			if err != nil {
				t.Error(err)
			}
			for unit, want := range map[string]string{"first": "essions", "second": "essions", "list": "agents"} {
				got := notes.of(unit)
				if !strings.Contains(got, want) {
					t.Errorf("of %s was noted %q", unit, got)
				}
				got = strings.ReplaceAll(got, "86400000000", "") // the microseconds of a day are no argument
				for _, argument := range []string{"agt_1", "sess_0", "400000", "/v1/"} {
					if strings.Contains(got, argument) {
						t.Errorf("%s is noted: %s", argument, got)
					}
				}
			}
			if inserted["first"] != "first" || inserted["second"] != "second" {
				t.Errorf("the jobs have the parents %v", inserted)
			}
		})
	}
}
