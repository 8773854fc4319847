package metering_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// A session whose wallet holds less than it should makes its own request fail, hour after hour. All
// others are booked, and granted more.
func TestASessionThatCannotBeBookedFailsAlone(t *testing.T) {
	t.Parallel()
	w, done := apptest.Start(t, apptest.Options{})
	var log bytes.Buffer
	w.Connect(0, w.Clock, nil, slog.New(slog.NewTextHandler(&log, nil)))
	sick, well := w.RegisterFunded(10), w.RegisterFunded(10)
	broken := w.Buy(sick, apptest.Local).ID
	var ids []string
	for range 9 {
		ids = append(ids, w.Buy(well, apptest.Local).ID)
	}
	renew := func(up int64) (granted map[string]traffic.Grant) {
		t.Helper()
		requests := []traffic.LeaseRequest{{SessionID: broken, Lease: "l", Up: up, Want: 1 << 20}}
		for _, id := range ids {
			requests = append(requests, traffic.LeaseRequest{SessionID: id, Lease: "l", Up: up, Want: 1 << 20})
		}
		grants, err := w.Traffic.Renew(context.Background(), "r", requests)
		apptest.OK(t, err)
		granted = map[string]traffic.Grant{}
		for _, g := range grants {
			granted[g.SessionID] = g
		}
		return granted
	}
	renew(0)
	renew(400_000)
	held := w.Column(`SELECT held_trial FROM wallets WHERE agent_id = ?`, sick)[0]
	w.Exec(`UPDATE wallets SET held_trial = 0 WHERE agent_id = ?`, sick)
	for hour := range int64(3) {
		w.Clock.Advance(time.Hour)
		up := 500_000 + 1000*hour
		granted := renew(up)
		for _, id := range ids {
			if g := granted[id]; g.Outcome != traffic.Open || g.Granted != up+1<<20 || w.Read(well, id).Usage.Used() != up {
				t.Errorf("hour %d: granted %+v, booked %d of %d", hour, g, w.Read(well, id).Usage.Used(), up)
			}
		}
		if g, answered := granted[broken]; answered {
			t.Errorf("hour %d: the broken one is granted %+v", hour, g)
		}
		w.Store.CountUpdates()
		granted = renew(up)
		if n := w.Store.CountUpdates(); len(granted) != len(ids) || n != 1 {
			t.Errorf("repeated at once: %d grants in %d transactions", len(granted), n)
		}
		apptest.Equal(t, "failing", w.Traffic.Failing(), 1)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 || !strings.Contains(log.String(), broken) {
		t.Errorf("logged %d times in three hours:\n%s", n, log.String())
	}
	// Once it is mended, nothing of what passed is missing.
	w.Exec(`UPDATE wallets SET held_trial = `+held+` WHERE agent_id = ?`, sick)
	w.Clock.Advance(6 * time.Second)
	if g := renew(600_000)[broken]; g.Outcome != traffic.Open || w.Read(sick, broken).Usage.Used() != 600_000 {
		t.Errorf("mended it is granted %+v", g)
	}
	w.Clock.Advance(2 * time.Minute)
	apptest.Equal(t, "failing", w.Traffic.Failing(), 0)
	done()
}

// A request for a session that does not exist has no grant, and costs the others none.
func TestAnUnknownSessionFailsAlone(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	id := w.Buy(w.RegisterFunded(domain.Dollar), apptest.Local).ID
	grants, err := w.Traffic.Renew(t.Context(), "r", []traffic.LeaseRequest{{SessionID: "sess_none", Lease: "a", Want: 1 << 20},
		{SessionID: id, Lease: "b", Want: 1 << 20}})
	if err != nil || len(grants) != 1 || grants[0].SessionID != id || grants[0].Outcome != traffic.Open {
		t.Errorf("granted %+v, %v", grants, err)
	}
}
