package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// noticed is what a unit found when it notified its agent.
type noticed struct {
	Pending int
	Marked  bool
}

// noticeAhead is the unit of a purchase that stores an event for the webhook of its agent, with its
// delivery and its job, and marks that the agent was notified.
func noticeAhead(ctx context.Context, st ports.Store, n, mark int64, end error) (found noticed, err error) {
	err = buyAhead(ctx, st, "agt_1", n, func(ctx context.Context, tx ports.Tx) error {
		found = noticed{}
		to, err := tx.Webhooks().PeekEndpoint(ctx, "agt_1")
		if err != nil || to.URL == "" {
			return fmt.Errorf("the webhook %q: %w", to.URL, err)
		}
		if found.Marked, err = tx.Webhooks().MarkNotified(ctx, "agt_1", "a day, of two words", mark); err != nil {
			return err
		}
		e := webhook.Event{ID: fmt.Sprint("evt_", n), AgentID: "agt_1", Type: webhook.BalanceLow, At: now,
			Data: map[string]string{"n": fmt.Sprint(n)}}
		if err := tx.Outbox().Append(ctx, e); err != nil {
			return err
		}
		if found.Pending, err = tx.Webhooks().Pending(ctx, "agt_1", webhook.MaxPending); err != nil {
			return err
		}
		d := webhook.NewDelivery(fmt.Sprint("dlv_", n), e, now)
		if err := tx.Webhooks().InsertDelivery(ctx, d); err != nil {
			return err
		}
		if err := tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DeliverJob, DeliveryID: d.ID, At: now}, now); err != nil {
			return err
		}
		return end
	})
	return found, err
}

// Units with events for the webhook of their agent share a transaction, and see what those before
// them stored. The store is asked for what is ahead, for the writes, for each job of this test, and
// for the commit.
func TestNoticesShareATransaction(t *testing.T) {
	t.Parallel()
	w, url := link.New(t, pg.Database(t), 0)
	st := withJobs(t, openURL(t, url))
	addAgent(t, st, "agt_1", 100*domain.Dollar)
	if _, err := st.Writer().Exec("UPDATE agents SET webhook_url = 'https://agent.example', webhook_version = 1"); err != nil {
		t.Fatal(err)
	}
	if got, err := noticeAhead(t.Context(), st, 1, 7, nil); err != nil || got != (noticed{0, true}) {
		t.Fatalf("the first: %+v, %v", got, err)
	}
	found := make([]noticed, 4)
	g := closeGateFor(context.Background(), ofAgent, t, st.Store)
	for i, c := range []struct {
		mark int64
		end  error
	}{{7, nil}, {8, errUnit}, {8, nil}, {8, nil}} {
		g.queue(want(t, fmt.Sprint("unit ", i), c.end, func() (err error) {
			found[i], err = noticeAhead(context.Background(), st, int64(10+i), c.mark, c.end)
			return err
		}))
	}
	before := w.Asked()
	g.pass()
	// The commit of the gate; what is read ahead, what is written, three jobs, the commit; and no
	// more than one preparation of each.
	if asked := w.Asked() - before; asked > 14 {
		t.Errorf("the server was asked %d times", asked)
	}
	want := []noticed{{1, false}, {2, true}, {2, true}, {3, false}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +found):\n%s", diff)
	}
	got := map[string]int{}
	for table, query := range map[string]string{"events": "SELECT COUNT(*) FROM outbox WHERE data LIKE '{\"n\":%'",
		"deliveries": "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'pending' AND event_id LIKE 'evt_%'",
		"mark":       "SELECT mark FROM webhook_marks WHERE agent_id = 'agt_1' AND what = 'a day, of two words'",
		"jobs":       "SELECT COUNT(*) FROM test_jobs"} {
		var n int
		if err := st.Writer().QueryRow(query).Scan(&n); err != nil {
			t.Fatal(table, err)
		}
		got[table] = n
	}
	if diff := cmp.Diff(map[string]int{"events": 4, "deliveries": 4, "mark": 8, "jobs": 4}, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	verify(t, st.Store)
}

// Who marks without the wallet, which others that mark lock, does so alone.
func TestAMarkWithoutItsLockIsSetAlone(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	runs := 0
	err := st.Update(t.Context(), ofAgent, func(ctx context.Context, tx ports.Tx) error {
		runs++
		_, err := tx.Webhooks().MarkNotified(ctx, "agt_1", "once", 1)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs, want one in a batch and one alone", err, runs)
	}
}
