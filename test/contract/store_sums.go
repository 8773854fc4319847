package contract

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var sumClaims = []claim{
	{"hours sum money and traffic, oldest first", hourSums},
	{"session totals sum the same, the most recently created first", sessionSums},
	{"session totals are paged", sessionSumPages},
	{"hours of one session are those of its agent alone", hoursOfSession},
	{"counters add up for each agent", counterSums},
}

// recordHours leaves traffic and money of two sessions in three hours.
func recordHours(t *testing.T, st ports.Store) (first time.Time) {
	addAgent(t, st, "agt_1", 100)
	addAgent(t, st, "agt_2", 100)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), staticSession("agt_1", "sess_2"), dynamicSession("agt_2", "sess_3"))
	first = storeNow.Truncate(time.Hour)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		record := func(agentID, sessionID string, hour time.Time, up, down int64) error {
			return tx.Traffic().Record(ctx, agentID, sessionID, hour, ports.Totals{Up: up, Down: down, Connections: 1})
		}
		return errors.Join(
			record("agt_1", "sess_1", first, 1, 10),
			record("agt_1", "sess_1", first, 2, 20),
			record("agt_1", "sess_2", first, 4, 40),
			record("agt_1", "sess_1", first.Add(2*time.Hour), 8, 80),
			record("agt_2", "sess_3", first, 16, 160))
	})
	mustPost(t, st, hold("agt_1", "hold:1", 0, 60))
	mustPost(t, st, ports.Posting{Entry: billing.Entry{ID: "txn_c", AgentID: "agt_1", Type: billing.ChargeEntry,
		Held: billing.Funds{Own: -40}, Account: billing.Revenue, Counter: 40, Ref: "charge:1", SessionID: "sess_1",
		At: first.Add(2*time.Hour + time.Minute)}})
	mustPost(t, st, ports.Posting{Entry: billing.Entry{ID: "txn_r", AgentID: "agt_1", Type: billing.RefundEntry,
		Available: billing.Funds{Own: 15}, Account: billing.Revenue, Counter: -15, Ref: "refund:1", SessionID: "sess_1",
		At: first.Add(3*time.Hour - time.Microsecond)}})
	return first
}

func hourSums(t *testing.T, st ports.Store) {
	first := recordHours(t, st)
	hours := func(from, to time.Time) (got []ports.Hour) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			got, err = tx.Statements().Hours(ctx, "agt_1", from, to)
			return err
		})
		return got
	}
	all := []ports.Hour{
		{Start: first, Totals: ports.Totals{Up: 7, Down: 70, Connections: 3, Recharged: 100}},
		{Start: first.Add(2 * time.Hour), Totals: ports.Totals{Up: 8, Down: 80, Connections: 1, Charged: 40, Refunded: 15}},
	}
	if diff := cmp.Diff(all, hours(first, first.Add(3*time.Hour))); diff != "" {
		t.Errorf("all of it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[:1], hours(first, first.Add(2*time.Hour))); diff != "" {
		t.Errorf("the end is exclusive (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[1:], hours(first.Add(time.Hour), first.Add(9*time.Hour))); diff != "" {
		t.Errorf("the start is inclusive (-want +got):\n%s", diff)
	}
}

func hoursOfSession(t *testing.T, st ports.Store) {
	first := recordHours(t, st)
	for _, c := range []struct {
		agent, session string
		from, to       time.Time
		want           []ports.Hour
	}{
		{"agt_1", "sess_1", first, first.Add(168 * time.Hour), []ports.Hour{
			{Start: first, Totals: ports.Totals{Up: 3, Down: 30, Connections: 2}},
			{Start: first.Add(2 * time.Hour), Totals: ports.Totals{Up: 8, Down: 80, Connections: 1, Charged: 40, Refunded: 15}}}},
		{"agt_1", "sess_1", first.Add(time.Hour), first.Add(2 * time.Hour), nil},
		{"agt_2", "sess_1", first, first.Add(3 * time.Hour), nil},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Statements().SessionHours(ctx, c.agent, c.session, c.from, c.to)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", c.session, c.agent, diff)
			}
			return err
		})
	}
}

func sessionSums(t *testing.T, st ports.Store) {
	first := recordHours(t, st)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Statements().SessionTotals(ctx, "agt_1", first, first.Add(3*time.Hour))
		want := []ports.SessionTotal{
			{SessionID: "sess_2", Place: 2, Type: session.Static, ProductNo: "sta_1", Totals: ports.Totals{Up: 4, Down: 40, Connections: 1}},
			{SessionID: "sess_1", Place: 1, Type: session.Dynamic, ProductNo: "dyn_1",
				Totals: ports.Totals{Up: 11, Down: 110, Connections: 3, Charged: 40, Refunded: 15}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
}

func sessionSumPages(t *testing.T, st ports.Store) {
	first := recordHours(t, st)
	due := dynamicSession("agt_1", "sess_due")
	due.Bytes, due.Money = 2_000_000_000, session.Money{Held: billing.Funds{Own: 800_000}}
	addSessions(t, st, due, dynamicSession("agt_1", "sess_unused"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Traffic().PutUsage(ctx, due.ID, traffic.Delta{Up: 1_000_000_000, At: first.Add(time.Minute)}),
			tx.Traffic().Record(ctx, "agt_1", due.ID, first, ports.Totals{Up: 1_000_000_000}),
			tx.Traffic().Record(ctx, "agt_1", due.ID, first.Add(time.Hour), ports.Totals{Up: 1}))
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, from := range []time.Time{first, first.Add(time.Hour)} {
			to := from.Add(2 * time.Hour)
			all, err := tx.Statements().SessionTotals(ctx, "agt_1", from, to)
			if err != nil {
				return err
			}
			if want := map[bool]domain.Money{true: 400_000}[from.Equal(first)]; all[0].SessionID != due.ID || all[0].Charged != want {
				t.Errorf("from %s what was used and not charged is in %+v, want %s", from, all[0], want)
			}
			var sum ports.Totals
			for _, one := range all {
				sum = sum.Plus(one.Totals)
			}
			sum.Charged -= all[0].Charged
			after := int64(0)
			for i := range all {
				page, totals, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", from, to, domain.Page{Number: 1, Size: 1, After: after})
				if diff := cmp.Diff(all[i:i+1], page.Items); diff != "" || totals != sum || page.Total != len(all) || (page.Next == 0) != (i == len(all)-1) {
					t.Errorf("after %d: %+v of %+v\n%s", after, page, totals, diff)
				}
				numbered, _, numberedErr := tx.Statements().SessionTotalsPage(ctx, "agt_1", from, to, domain.Page{Number: i + 1, Size: 1})
				if diff := cmp.Diff(page.Items, numbered.Items); diff != "" {
					t.Errorf("page %d:\n%s", i+1, diff)
				}
				if err = errors.Join(err, numberedErr); err != nil {
					return err
				}
				after = page.Next
			}
			past, _, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", from, to, domain.Page{Number: 9, Size: 1})
			if err != nil || len(past.Items) != 0 || past.Total != len(all) {
				t.Errorf("the page after the last: %+v, %v", past, err)
			}
		}
		return nil
	})
}

func counterSums(t *testing.T, st ports.Store) {
	one := ports.Tally{Reported: 1, Scored: 2, Good: 3, Rotations: 4, Bytes: 5}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Counters().Add(ctx, "agt_1", one), tx.Counters().Add(ctx, "agt_1", one),
			tx.Counters().Add(ctx, "agt_2", one))
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Counters().Get(ctx, "agt_1")
		if want := (ports.Tally{Reported: 2, Scored: 4, Good: 6, Rotations: 8, Bytes: 10}); got != want {
			t.Errorf("the tally is %+v, want %+v", got, want)
		}
		none, noneErr := tx.Counters().Get(ctx, "agt_3")
		if none != (ports.Tally{}) {
			t.Errorf("the tally of one who did nothing is %+v", none)
		}
		return errors.Join(err, noneErr)
	})
}
