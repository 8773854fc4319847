package proof_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
	"agentproxy/test/pg"
)

// What a session uses changes its row and no index, but for what it must be found by: in each hour that it is due to be
// charged and that it was, and once that it ended and that it was counted. PostgreSQL counts both: at the review of 87cde273
// half of the updates changed an index.
func TestMostUpdatesOfSessionsChangeNoIndex(t *testing.T) {
	t.Parallel()
	const sessions, hours, renewals = 8, 4, 10
	url := pg.Database(t)
	w, done := apptest.Start(t, apptest.Options{Database: url})
	agent := w.RegisterFunded(50)
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = w.Buy(agent, apptest.Local).ID
		w.RenewLease(traffic.LeaseRequest{SessionID: ids[i], Lease: "l", Want: 100_000})
	}
	used := int64(0)
	for range hours {
		for range renewals {
			used += 100_000
			w.Clock.Advance(5 * time.Minute)
			for _, id := range ids {
				w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "l", Up: used, Want: 100_000})
			}
		}
		w.Clock.Advance(10 * time.Minute)
		apptest.OK(t, w.Tasks.Settle(t.Context()))
	}
	for _, id := range ids {
		w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "l", Up: used, Close: true})
		_, err := w.Sessions.Terminate(t.Context(), agent, id)
		apptest.OK(t, err)
	}
	w.Clock.Advance(2 * time.Hour)
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.OK(t, w.DB.SumUp(t.Context()))
	done()
	all, kept := updatesOfSessions(t, url)
	t.Logf("%d of %d updates are HOT", kept, all)
	// Beside those that change an index, each hour and at the end, some find no space in their page: how many depends on
	// when PostgreSQL prunes it.
	if others := all - kept; all < sessions*hours*renewals || 2*others > all {
		t.Errorf("of %d updates of %d sessions in %d hours %d changed an index", all, sessions, hours, others)
	}
}

// updatesOfSessions returns how many rows of sessions were updated, and how many of these stayed in their indexes, once the
// other connections have handed in what they counted.
func updatesOfSessions(t *testing.T, url string) (all, kept int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	apptest.OK(t, err)
	defer conn.Close(ctx)
	for others := 1; others > 0; {
		apptest.OK(t, conn.QueryRow(ctx, `SELECT COUNT(*), (SELECT pg_sleep(0.01)::text) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others, new(any)))
	}
	apptest.OK(t, conn.QueryRow(ctx, `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
		WHERE relname = 'sessions'`).Scan(&all, &kept))
	return all, kept
}
