package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
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

// On SQLite the units of a batch read the wallet of their agent once, and write it once, whichever of them fail.
func TestABatchOnAFileReadsAndWritesARowOnce(t *testing.T) {
	t.Parallel()
	notes := &tracer{notes: map[string][]string{}}
	path := sqlitetest.File(t)
	st := openWith(t, storage.Config{Path: path, Trace: notes})
	const units, failing = 5, 3
	addAgent(t, st, "agt_1", units*1_000_000)
	changeFile(t, path, "UPDATE agents SET description = 'changed'")
	refused := errors.New("refused")
	g := closeGate(t, st)
	var failed atomic.Int32
	for n := range int64(units) {
		g.queue(func() {
			ctx := context.WithValue(t.Context(), unitName{}, fmt.Sprint(n))
			err := buyAhead(ctx, st, "agt_1", n, func(context.Context, ports.Tx) error {
				if n == failing {
					return refused
				}
				return nil
			})
			if errors.Is(err, refused) {
				failed.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	g.pass()
	reads, written := 0, map[int]bool{}
	for n := range units {
		reads += strings.Count(notes.of(fmt.Sprint(n)), "FROM wallets")
		written[strings.Count(notes.of(fmt.Sprint(n)), "UPDATE wallets")] = true
	}
	if reads != 1 || len(written) != 1 || !written[1] || failed.Load() != 1 {
		t.Errorf("the wallet was read %d times and written %v times by each; %d failed", reads, written, failed.Load())
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		w, err := tx.Ledger().Wallet(ctx, "agt_1")
		if err != nil || w.LiveSessions != units-1 {
			t.Errorf("%d sessions live, %v", w.LiveSessions, err)
		}
		list, err := tx.Sessions().List(ctx, "agt_1", ports.SessionFilter{}, domain.Page{Number: 1, Size: 20})
		if list.Total != units-1 {
			t.Errorf("there are %d sessions", list.Total)
		}
		return err
	})
}
