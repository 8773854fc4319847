package storage_test

import (
	"context"
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
		list, _, err := tx.Ledger().SessionTotalsPage(ctx, "agt_1", hour, hour.Add(time.Hour), domain.Page{Number: 1, Size: 20})
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
		if _, _, err := tx.Ledger().SessionTotalsPage(ctx, "agt_1", now, now.Add(time.Hour), domain.Page{Number: 1, Size: 20}); err != nil {
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
