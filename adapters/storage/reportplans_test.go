package storage_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// lookedUp matches how many hours PostgreSQL read, and how often, to find the sessions of a page.
var lookedUp = regexp.MustCompile(`on usage_hours u \(actual rows=(\d+) loops=(\d+)\)`)

// TestPageOfAReportIsNotJoinedWithAllHours takes nested loops from the planner, which at 1.2 million sessions
// it gave up by itself: what may become a join with all hours of the agent becomes one.
func TestPageOfAReportIsNotJoinedWithAllHours(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	st := openURL(t, url+separator+"enable_nestloop=off")
	const many = 2000
	manyEnded(t, st, many)
	hour := now.Truncate(time.Hour).Add(-2 * time.Hour)
	execAll(t, st, fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded,
		recharged) SELECT agent_id, %d, id, 1, 2, 3, 4, 0, 0 FROM sessions`, hour.UnixMicro()))
	sumUp(t, st)
	execAll(t, st, "VACUUM ANALYZE")
	plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		list, _, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", hour, hour.Add(time.Hour), domain.Page{Number: 1, Size: 20})
		if list.Total != many || len(list.Items) != 20 {
			t.Errorf("%d of %d sessions", len(list.Items), list.Total)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all, hours := strings.Join(plans, "\n\n"), 0
	for _, m := range lookedUp.FindAllStringSubmatch(all, -1) {
		rows, _ := strconv.Atoi(m[1])
		loops, _ := strconv.Atoi(m[2])
		hours += rows * loops
	}
	if hours < 20 || hours > 100 {
		t.Errorf("%d hours are read to find a page of 20 sessions:\n%s", hours, all)
	}
}

// SQLite finds the hours of one session where it counts, not those of all sessions of the agent.
func TestHoursAreCountedBySession(t *testing.T) {
	t.Parallel()
	plans, err := openStore(t).Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if _, _, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", now, now.Add(time.Hour), domain.Page{Number: 1, Size: 20}); err != nil {
			return err
		}
		return storage.LastHours(ctx, tx, "sess_1")
	})
	all := strings.Join(plans, "\n")
	for _, want := range []string{"SEARCH u USING PRIMARY KEY (agent_id=? AND session_id=?", "SEARCH c USING PRIMARY KEY (agent_id=? AND session_id=?"} {
		if err != nil || !strings.Contains(all, want) {
			t.Errorf("%v, no %s:\n%s", err, want, all)
		}
	}
}

// SQLite finds the session of each sum of a month by its number, where a statement is of keys.
func TestAStatementByKeyFindsItsSessions(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "key_1"} {
		plans, err := openStore(t).Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().StatementByKey(ctx, "agt_1", key, now, now.AddDate(0, 1, 0))
			return err
		})
		all := strings.Join(plans, "\n")
		if err != nil || !strings.Contains(all, "SEARCH s USING INDEX sessions_agent (agent_id=? AND ord=?)") {
			t.Errorf("key %q, %v:\n%s", key, err, all)
		}
	}
}

// The hours of a report are those of the agents that were charged in its time.
func TestHoursOfAReportAreThoseOfChargedAgents(t *testing.T) {
	t.Parallel()
	plans, err := openStore(t).Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Overview().Deliveries(ctx, now, now.Add(time.Hour), ports.ByDay)
		return err
	})
	all := strings.Join(plans, "\n")
	for _, want := range []string{"usage_hours_hour (counted=? AND agent_id=? AND hour>? AND hour<?)", "ledger_entries_at"} {
		if err != nil || !strings.Contains(all, want) {
			t.Errorf("%v, no %s:\n%s", err, want, all)
		}
	}
}

// Of a large agent PostgreSQL does not look for a charge of each hour among all of its entries, as it did at 300,000
// sessions by itself: what it took nothing else for is taken from the planner.
func TestChargesOfAReportAreReadOnce(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	for _, name := range []string{"enable_hashjoin", "enable_mergejoin", "enable_hashagg", "enable_sort"} {
		url = pg.With(url, name, "off")
	}
	st := openURL(t, url)
	const used = 60
	manyEnded(t, st, 2000)
	hour := now.Truncate(time.Hour).Add(-2 * time.Hour).UnixMicro()
	execAll(t, st, fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded,
		recharged) SELECT agent_id, %d, id, 1, 2, 3, 4, 0, 0 FROM sessions WHERE ord <= %d`, hour, used), fmt.Sprintf(`INSERT INTO
		ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref, session_id, order_id,
		description, at, balance_after) SELECT 'txn_' || ord || '_' || k, agent_id, 10 * ord + k, 'charge', 0, 0, 0, -1, 'revenue', 1,
		'charge:' || k || id, id, '', '', %d, 0 FROM sessions CROSS JOIN generate_series(1, 10) k`, hour), "VACUUM ANALYZE")
	plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Overview().Deliveries(ctx, now.Add(-24*time.Hour), now, ports.ByProvider)
		n := 0
		for _, d := range list {
			n += int(d.Count)
		}
		if n != used {
			t.Errorf("delivered: %+v", list)
		}
		return err
	})
	all, reads := strings.Join(plans, "\n\n"), 0
	for _, m := range ofEntries.FindAllStringSubmatch(all, -1) {
		loops, _ := strconv.Atoi(m[2])
		reads = max(reads, loops)
	}
	if err != nil || reads == 0 || reads > 10 { // workers of one scan
		t.Errorf("%v, entries are read %d times:\n%s", err, reads, all)
	}
}

// ofEntries matches how many entries PostgreSQL read, and how often.
var ofEntries = regexp.MustCompile(`on ledger_entries e \(actual rows=(\d+) loops=(\d+)\)`)

// A statement of a month with thousands of sessions reads sums that are kept, and a page of sessions.
func TestAStatementReadsFewEntries(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		const many = 2000
		st := open(t)
		manyEnded(t, st, many)
		month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		execAll(t, st, fmt.Sprintf(`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter,
			ref, session_id, order_id, description, at, balance_after)
			SELECT 'txn_' || ord, agent_id, ord + 1, 'hold', 0, -1, 0, 1, '', 0, 'hold:' || id, id, '', '', %d, 0 FROM sessions`,
			month.UnixMicro()), fmt.Sprintf("UPDATE wallets SET entries = %d WHERE agent_id = 'agt_1'", many+1))
		for range 2 {
			sumUp(t, st)
		}
		analyze(t, st)
		plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			sums, err := tx.Statements().Statement(ctx, "agt_1", month, month.AddDate(0, 1, 0))
			if got := sums.ByType["hold"]; got != -many {
				t.Errorf("holds of %d", got)
			}
			list, errItems := tx.Statements().StatementItems(ctx, "agt_1", month, month.AddDate(0, 1, 0), domain.Page{Number: 1, Size: 20})
			if list.Total != many || len(list.Items) != 20 || list.Items[0].Held != 1 || list.Next == 0 {
				t.Errorf("%d of %d sessions: %+v", len(list.Items), list.Total, list)
			}
			return errors.Join(err, errItems)
		})
		all := strings.Join(plans, "\n\n")
		read := 0
		for _, m := range ofEntries.FindAllStringSubmatch(all, -1) {
			rows, _ := strconv.Atoi(m[1])
			loops, _ := strconv.Atoi(m[2])
			read += rows * loops
		}
		if st.Pool() == nil && !strings.Contains(all, "ledger_entries_agent (agent_id=? AND ord>?)") {
			read = many
		}
		if err != nil || read > 100 {
			t.Errorf("%d entries are read of a month that is summed, %v:\n%s", read, err, all)
		}
	})
}

// ofReport matches how many rows PostgreSQL read of what reports are made of, and how often.
var ofReport = regexp.MustCompile(`on (?:ledger_entries e|usage_hours h|usage_hours u|sessions s|upstream_orders \w) \(actual rows=(\d+) loops=(\d+)\)`)

// The report of margins and the operator's days read what is summed of days, and of entries and hours what is newer.
func TestReportsOfMarginsReadSums(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		const many = 2000
		st := open(t)
		manyEnded(t, st, many)
		later := st.Later()
		hour := now.Truncate(time.Hour).Add(-2 * time.Hour)
		execAll(t, st, fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded,
			recharged) SELECT agent_id, %d, id, 1, 2, 3, 4, 0, 0 FROM sessions`, hour.UnixMicro()), fmt.Sprintf(`INSERT INTO
			ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref, session_id, order_id,
			description, at, balance_after) SELECT 'txn_' || ord, agent_id, 10 + ord, 'charge', 0, 0, 0, -4, 'revenue', 4,
			'charge:' || id, id, '', '', %d, 0 FROM sessions`, hour.UnixMicro()))
		for range 3 {
			sumUp(t, st)
			later(storage.SumDaysAfter)
		}
		analyze(t, st)
		to := st.Clock().Now().AddDate(0, 0, 1).Truncate(24 * time.Hour)
		for _, by := range []ports.MarginKey{ports.ByProvider, ports.ByProduct, ports.ByAgent, ports.ByDay} {
			plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				groups, err := tx.Overview().Margins(ctx, to.AddDate(0, 0, -30), to, by)
				list, errList := tx.Overview().Deliveries(ctx, to.AddDate(0, 0, -30), to, by)
				charged, sessions := domain.Money(0), 0
				for _, m := range groups {
					charged += m.Charged
				}
				for _, d := range list {
					sessions += d.Count
				}
				if charged != 4*many || sessions != many {
					t.Errorf("by %s: %d are charged, %d sessions delivered: %+v", by, charged, sessions, list)
				}
				return errors.Join(err, errList)
			})
			all, read := strings.Join(plans, "\n\n"), 0
			for _, m := range ofReport.FindAllStringSubmatch(all, -1) {
				rows, _ := strconv.Atoi(m[1])
				loops, _ := strconv.Atoi(m[2])
				read += rows * loops
			}
			for _, m := range removed.FindAllStringSubmatch(all, -1) {
				rows, _ := strconv.Atoi(m[1])
				read += rows
			}
			for _, scan := range []string{"SCAN e", "SCAN h", "SCAN s", "SCAN u", "SCAN o", "SCAN r", "upstream_orders_status"} {
				if strings.Contains(all, scan) {
					read = many
				}
			}
			if err != nil || read > 50 || !strings.Contains(all, "margin_sums") || st.Pool() == nil && !strings.Contains(all, "agent_hours_open") {
				t.Errorf("by %s %d rows of entries, sessions and hours are read that are summed, %v:\n%s", by, read, err, all)
			}
		}
	})
}
