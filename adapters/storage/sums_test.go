package storage_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var theHour = now.Truncate(time.Hour)

// useHours gives the sessions of manyEnded an hour each, a third of them two more, and some hours
// to none.
func useHours(t *testing.T, st *storage.Store) {
	t.Helper()
	hour := theHour.UnixMicro()
	const insert = `INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged) `
	execAll(t, st, insert+fmt.Sprintf(`SELECT agent_id, %d - ord %% 50 * 3600000000, id, ord, 2, 3, 4, 5, 0 FROM sessions`, hour),
		insert+fmt.Sprintf(`SELECT agent_id, %d - (ord %% 50 + 30) * 3600000000, id, 7, ord, 0, 1, 0, 0 FROM sessions
			WHERE ord %% 3 = 0`, hour),
		insert+fmt.Sprintf(`SELECT agent_id, %d - (ord %% 50 + 3) * 3600000000, id, 8, ord, 0, 1, 0, 0 FROM sessions
			WHERE ord %% 3 = 0`, hour),
		insert+fmt.Sprintf(`SELECT agent_id, %d - ord * 3600000000, '', 0, 0, 0, 0, 0, 9 FROM sessions WHERE ord < 100`, hour))
}

// expectCounts compares what lists and reports count with a count of the rows.
func expectCounts(t *testing.T, st *storage.Store, when string) {
	t.Helper()
	for _, f := range []ports.SessionFilter{
		{}, {Status: session.Expired}, {Status: session.Failed}, {Status: session.Active}, {Status: session.Terminated},
		{ProductNo: "rare"}, {ProductNo: "usual"}, {Type: session.Dynamic}, {Type: session.Static},
		{ProductNo: "usual", Status: session.Expired, Type: session.Dynamic}, {ProductNo: "rare", Status: session.Creating},
		{ProductNo: "usual", Country: "DE"}, {ProductNo: "rare", From: now}, {Status: session.Expired, To: now},
	} {
		where, args := "agent_id = 'agt_1'", []any{}
		for _, c := range []struct {
			column string
			value  string
		}{{"status", string(f.Status)}, {"product_no", f.ProductNo}, {"type", string(f.Type)}, {"country", f.Country}} {
			if c.value != "" {
				args = append(args, c.value)
				where += fmt.Sprintf(" AND %s = $%d", c.column, len(args))
			}
		}
		if !f.From.IsZero() {
			where += fmt.Sprint(" AND created_at >= ", f.From.UnixMicro())
		}
		if !f.To.IsZero() {
			where += fmt.Sprint(" AND created_at < ", f.To.UnixMicro())
		}
		var want int
		if err := st.Writer().QueryRow("SELECT COUNT(*) FROM sessions WHERE "+where, args...).Scan(&want); err != nil {
			t.Fatal(err)
		}
		page := ports.SessionPage{Filter: f, Page: domain.Page{Number: 1, Size: 1}}
		reads := ports.ReadSet{Agent: "agt_1", List: &page}
		err := st.View(t.Context(), reads, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Sessions().List(ctx, "agt_1", f, page.Page)
			if list.Total != want {
				t.Errorf("%s, %+v: a list counts %d, want %d", when, f, list.Total, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, hours := range [][2]int{{-1000, 1}, {-24, 1}, {-48, 1}, {-48, -24}, {-100, -20}, {0, 1}, {5, 9}, {-30, -29}} {
		from, to := theHour.Add(time.Duration(hours[0])*time.Hour), theHour.Add(time.Duration(hours[1])*time.Hour)
		expectReport(t, st, when, from, to)
	}
}

// totalsIn sums the hours of a time, and counts their sessions.
func totalsIn(t *testing.T, st *storage.Store, from, to time.Time, and string) (used int, sum ports.Totals) {
	t.Helper()
	err := st.Writer().QueryRow(fmt.Sprintf(`SELECT COUNT(DISTINCT session_id), COALESCE(SUM(up), 0), COALESCE(SUM(down), 0),
		COALESCE(SUM(connections), 0), COALESCE(SUM(charged), 0), COALESCE(SUM(refunded), 0), COALESCE(SUM(recharged), 0)
		FROM usage_hours WHERE agent_id = 'agt_1' AND hour >= %d AND hour < %d %s`, from.UnixMicro(), to.UnixMicro(), and)).
		Scan(&used, &sum.Up, &sum.Down, &sum.Connections, &sum.Charged, &sum.Refunded, &sum.Recharged)
	if err != nil {
		t.Fatal(err)
	}
	return used, sum
}

func expectReport(t *testing.T, st *storage.Store, when string, from, to time.Time) {
	t.Helper()
	used, want := totalsIn(t, st, from, to, "AND session_id <> ''")
	_, all := totalsIn(t, st, from, to, "")
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, totals, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", from, to, domain.Page{Number: 1, Size: 1})
		if err != nil || totals != want || list.Total != used {
			t.Errorf("%s, from %s to %s: the report has %d sessions and %+v, want %d and %+v; %v", when, from, to, list.Total,
				totals, used, want, err)
		}
		hours, err := tx.Statements().Hours(ctx, "agt_1", from, to)
		var got ports.Totals
		for _, h := range hours {
			got = got.Plus(h.Totals)
		}
		if got != all || !slices.IsSortedFunc(hours, func(x, y ports.Hour) int { return x.Start.Compare(y.Start) }) {
			t.Errorf("%s, from %s to %s: hours of %+v, want %+v", when, from, to, got, all)
		}
		return err
	})
}

// expectSummed holds what is counted against its rules.
func expectSummed(t *testing.T, st *storage.Store, when string) {
	t.Helper()
	faults, _, err := st.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rules := []string{"the counts of ended sessions are right", "a counted session ended and holds nothing",
		"the sums of hours are right", "the counts of sessions by their last hour are right"}
	for _, rule := range rules {
		if !slices.Contains(st.Rules(), rule) {
			t.Fatalf("there is no rule %q", rule)
		}
	}
	for _, f := range faults {
		if slices.Contains(rules, f.Rule) {
			t.Errorf("%s: %+v", when, f)
		}
	}
}

func sumUp(t *testing.T, st *storage.Store) {
	t.Helper()
	if err := st.SumUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Whatever is counted already, a list and a report count the same.
func TestWhatIsCountedChangesNoAnswer(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		manyEnded(t, st, 1200)
		useHours(t, st)
		expectCounts(t, st, "before anything is counted")
		sumUp(t, st)
		var sessions, hours int
		err := st.Writer().QueryRow(`SELECT (SELECT COUNT(*) FROM sessions WHERE counted = 0),
			(SELECT COUNT(*) FROM usage_hours WHERE counted = 0)`).Scan(&sessions, &hours)
		if err != nil || sessions != 23 || hours > 100 || st.Pool() == nil && hours == 0 { // PostgreSQL's clock is later
			t.Errorf("%d sessions and %d hours are not counted, %v", sessions, hours, err)
		}
		expectCounts(t, st, "once counted")
		expectSummed(t, st, "once counted")

		execAll(t, st, "UPDATE sessions SET status = 'terminated' WHERE ord % 100 = 0",
			"UPDATE usage_hours SET up = up + 11, charged = charged + 1 WHERE session_id = 'sess_10' OR session_id = ''",
			fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
				SELECT agent_id, %d, id, 1, 1, 1, 1, 1, 1 FROM sessions WHERE ord %% 7 = 0`, theHour.Add(-777*time.Hour).UnixMicro()),
			fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
				SELECT agent_id, %d, id, 1, 1, 1, 1, 1, 1 FROM sessions WHERE ord %% 5 = 0 ON CONFLICT (agent_id, hour, session_id)
				DO UPDATE SET up = usage_hours.up + excluded.up`, theHour.Add(-2*time.Hour).UnixMicro()))
		expectCounts(t, st, "with what came late")
		expectSummed(t, st, "with what came late")
		sumUp(t, st)
		expectCounts(t, st, "once that is counted")
		expectSummed(t, st, "once that is counted")
	})
}

// Several processes may count at once.
func TestCountingAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		manyEnded(t, st, 1200)
		useHours(t, st)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := st.SumUp(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		sumUp(t, st)
		expectCounts(t, st, "counted by four")
		expectSummed(t, st, "counted by four")
	})
}
