package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var leaseClaims = []claim{
	{"a lease is read back as it was written", leaseRoundTrip},
	{"leases that were not renewed are stale", staleLeases},
	{"the store measures the age of leases", leasesAgeByTheStore},
	{"a lease that lasts longer is stale later", longLeases},
	{"a lease that is booked is not renewed", bookedLeases},
	{"the reports of a replica are replaced by part", leaseReports},
}

// ageLease makes a lease older. The store decides what time it is, so the row is changed.
func ageLease(t *testing.T, st ports.Store, id string, by time.Duration) {
	t.Helper()
	_, err := st.(interface{ Writer() *sql.DB }).Writer().ExecContext(t.Context(),
		fmt.Sprintf("UPDATE leases SET renewed_at = renewed_at - %d WHERE id = '%s'", by.Microseconds(), id))
	if err != nil {
		t.Fatal(err)
	}
}

func putLease(t *testing.T, st ports.Store, l traffic.Lease) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Traffic().PutLease(ctx, l) })
}

func staleNow(t *testing.T, st ports.Store, idle time.Duration, limit int) (stale []traffic.Lease) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		stale, err = tx.Traffic().Stale(ctx, idle, limit)
		return err
	})
	return stale
}

func leaseRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	want := traffic.Lease{SessionID: "sess_1", ID: "l1", Replica: "r1", Granted: 10}
	renewed := want
	renewed.Granted, renewed.Up, renewed.Down, renewed.Connections = 20, 3, 4, 5
	check := func(want traffic.Lease, found bool, count int) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, ok, err := tx.Traffic().Lease(ctx, "sess_1", "l1")
			got.Idle = 0
			if diff := cmp.Diff(want, got); diff != "" || ok != found {
				t.Errorf("found %v (-want +got):\n%s", ok, diff)
			}
			return err
		})
		if all := staleNow(t, st, -time.Hour, 10); len(all) != count {
			t.Errorf("%d leases, want %d", len(all), count)
		}
	}
	check(traffic.Lease{}, false, 0)
	for _, l := range []traffic.Lease{want, renewed} {
		putLease(t, st, l)
		check(l, true, 1)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Traffic().DropLease(ctx, "sess_1", "l1"), tx.Traffic().DropLease(ctx, "sess_1", "l1"))
	})
	check(traffic.Lease{}, false, 0)
}

func staleLeases(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	for i := range 4 {
		id := fmt.Sprint(i)
		putLease(t, st, traffic.Lease{SessionID: "sess_1", ID: id, Granted: 1})
		ageLease(t, st, id, time.Duration(40-10*i)*time.Minute)
	}
	for limit, want := range map[int]int{10: 2, 1: 1} {
		if stale := staleNow(t, st, 25*time.Minute, limit); len(stale) != want || stale[0].ID != "0" {
			t.Errorf("stale, at most %d: %+v", limit, stale)
		}
	}
}

// leasesAgeByTheStore writes with a time that the caller cannot give: the same row is
// young after it was written again, and its age is what passed since.
func leasesAgeByTheStore(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	l := traffic.Lease{SessionID: "sess_1", ID: "l1", Granted: 1, Idle: time.Hour}
	age := func() (idle time.Duration) {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, _, err := tx.Traffic().Lease(ctx, "sess_1", "l1")
			idle = got.Idle
			return err
		})
		return idle
	}
	putLease(t, st, l)
	if idle := age(); idle < 0 || idle > time.Minute {
		t.Errorf("a lease that was just written is %s old", idle)
	}
	ageLease(t, st, "l1", time.Hour)
	if idle := age(); idle < time.Hour || idle > time.Hour+time.Minute {
		t.Errorf("an hour later it is %s old", idle)
	}
	putLease(t, st, l)
	if idle := age(); idle < 0 || idle > time.Minute {
		t.Errorf("a lease that was renewed is %s old", idle)
	}
}

// longLeases are of gateways that relay for longer without the database: every process finds them stale as long
// after their gateways stopped as the others.
func longLeases(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	for id, lasts := range map[string]time.Duration{"usual": traffic.StopAfter, "long": time.Minute, "unset": 0, "endless": time.Hour} {
		putLease(t, st, traffic.Lease{SessionID: "sess_1", ID: id, Granted: 1, Lasts: lasts})
	}
	stale := func(after time.Duration) (ids string) {
		for _, l := range staleNow(t, st, after, 10) {
			ids += l.ID + " "
		}
		return ids
	}
	age := func(by time.Duration) {
		for _, id := range []string{"usual", "long", "unset", "endless"} {
			ageLease(t, st, id, by)
		}
	}
	age(30 * time.Second) // the test itself takes less than the next 30
	if ids := stale(traffic.ReclaimAfter); len(ids) != len("usual unset ") {
		t.Errorf("after 30 s %q are stale", ids)
	}
	age(60 * time.Second)
	if ids := stale(traffic.ReclaimAfter); len(ids) != len("usual unset long ") {
		t.Errorf("after 90 s %q are stale", ids)
	}
	age(traffic.MaxLasts)
	if ids := stale(traffic.ReclaimAfter); len(ids) != len("usual unset long endless ") {
		t.Errorf("a lease lasts longer than %s: %q", traffic.MaxLasts, ids)
	}
}

// Leases holds a store to the promises about leases alone.
func Leases(t *testing.T, open func(t *testing.T) ports.Store) {
	for _, c := range leaseClaims {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// bookedLeases have the counters that were booked, are as old as before, and come back by no booking.
func bookedLeases(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	putLease(t, st, traffic.Lease{SessionID: "sess_1", ID: "l1", Replica: "r1", Granted: 100, Lasts: time.Minute})
	ageLease(t, st, "l1", time.Hour)
	book := func(id string) {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Traffic().BookLease(ctx, traffic.Lease{SessionID: "sess_1", ID: id, Up: 1, Down: 2, Connections: 3, Lasts: time.Hour})
		})
	}
	book("l1")
	book("l2")
	all := staleNow(t, st, 0, 10)
	if len(all) != 1 || all[0].Idle < time.Hour-time.Minute {
		t.Fatalf("the leases are %+v", all)
	}
	all[0].Idle = 0
	want := traffic.Lease{SessionID: "sess_1", ID: "l1", Replica: "r1", Granted: 100, Up: 1, Down: 2, Connections: 3}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func leaseReports(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	check := func(want ...string) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Traffic().Reports(ctx)
			var got []string
			for _, r := range list {
				got = append(got, fmt.Sprint(r.AgentID, r.SessionID, r.Lease, " ", r.Up, r.Down, r.Connections))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the reports are %q, want %q", got, want)
			}
			return err
		})
	}
	put := func(replica string, part int, list ...traffic.Report) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Traffic().PutReports(ctx, replica, traffic.ReportPart{No: part, Reports: list})
		})
	}
	report := func(lease string, n int64) traffic.Report {
		return traffic.Report{AgentID: "agt_1", SessionID: "sess_1", Lease: lease, Up: n, Down: 1 << 60, Connections: 2}
	}
	check()
	put("r1", 0, report("a", 1), report("b", 2))
	put("r1", 1, report("c", 3))
	put("r2", 0, report("d", 4))
	const big = " 1152921504606846976 2"
	check("agt_1sess_1a 1"+big, "agt_1sess_1b 2"+big, "agt_1sess_1c 3"+big, "agt_1sess_1d 4"+big)
	put("r1", 0, report("b", 5))
	check("agt_1sess_1b 5"+big, "agt_1sess_1c 3"+big, "agt_1sess_1d 4"+big)
	put("r1", 1)
	put("r1", 7)
	check("agt_1sess_1b 5"+big, "agt_1sess_1d 4"+big)
	putLease(t, st, traffic.Lease{SessionID: "sess_1", ID: "x", Replica: "r2", Granted: 1})
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Traffic().DropReports(ctx) })
	check("agt_1sess_1d 4" + big)
}
