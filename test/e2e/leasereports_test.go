package e2e_test

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage/codec"
	"agentproxy/test/pg"
)

// trickle starts a server that sends a kilobyte twenty times a second, so that its tunnel is never quiet.
func trickle(t *testing.T) string {
	t.Helper()
	return listen(t, func(w io.Writer) {
		for range time.Tick(50 * time.Millisecond) {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	})
}

// reportedOf returns the bytes that gateways report of a session.
func reportedOf(t *testing.T, conn *pgx.Conn, id string) (n int64) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT ids, counts FROM lease_reports")
	if err != nil {
		t.Fatal(err)
	}
	var ids, counts []byte
	_, err = pgx.ForEachRow(rows, []any{&ids, &counts}, func() error {
		list, err := codec.DecodeReports(ids, counts)
		for _, r := range list {
			if r.SessionID == id {
				n = r.Up + r.Down
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A replica is killed between two renewals. What it reported is charged by the other one when the lease is taken back,
// though no answer showed it; before, the other one shows it within seconds.
func TestAKilledReplicaIsChargedWhatItReported(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	env := append(onPostgres(url), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", outage)
	dies, lives := serve(t, env...), serve(t, env...)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	number := func(query string, args ...any) (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	key, _ := dies.register("reported")
	shown, unseen := dies.dynamic(key, "1"), dies.dynamic(key, "1")
	target := trickle(t)
	var delivered [2]atomic.Int64
	for i, id := range []string{shown, unseen} {
		c, r, status, err := connect(dies.proxyAt(key, id), target)
		if err != nil || status != 200 {
			t.Fatalf("a tunnel: %d, %v", status, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		go func() { _, _ = io.Copy(counted{&delivered[i]}, r) }()
	}
	var known int64
	for range 3 { // each time more is shown
		before := known
		within(t, soon, "the other replica shows more", func() bool {
			known = lives.session(key, shown).Usage.Traffic.UsedBytes
			return known > before
		})
	}
	if most := delivered[0].Load(); known > most {
		t.Errorf("%d bytes are shown of %d", known, most)
	}
	// The agent reads nothing from here on.
	booked := func() int64 { return number("SELECT up + down FROM sessions WHERE id = $1", unseen) }
	var reported int64
	within(t, soon, "something is reported that is not booked", func() bool {
		reported = reportedOf(t, conn, unseen)
		return reported > booked()
	})
	dies.kill()
	before := booked()
	within(t, reclaimed, "its leases are taken back", func() bool { return number("SELECT COUNT(*) FROM leases") == 0 })
	used := booked()
	t.Logf("%d bytes were reported, %d booked before and %d after; delivered %d", reported, before, used, delivered[1].Load())
	if used < reported || used > delivered[1].Load() {
		t.Errorf("%d bytes are used; %d were reported, and %d delivered", used, reported, delivered[1].Load())
	}
	for _, id := range []string{shown, unseen} {
		lives.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	}
	lives.settled(key, unseen, used, used)
	lives.verify()
	dies.start()
}
