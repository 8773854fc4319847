package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestExpireSessions(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(100)
	v, far, dynamic := w.Buy(agent, apptest.Static), w.Buy(agent, apptest.RemoteStatic), w.Buy(agent, apptest.Local)
	renewed := w.Buy(agent, apptest.Static)
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	apptest.OK(t, err)
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	w.Clock.Advance(30*session.Day - time.Microsecond)
	before := w.Dump()
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	apptest.Equal(t, "the database", w.Dump(), before)
	w.Clock.Advance(time.Microsecond)
	apptest.Concurrently(4, func(int) {
		if err := w.Tasks.ExpireSessions(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, id := range []string{v.ID, far.ID} {
		got := w.Read(agent, id)
		if got.Status != session.Expired || got.Reason != session.TimeExpired || got.Cost != (sessions.Cost{Charged: apptest.Dollars("1")}) {
			t.Errorf("it is %+v, %+v", got.Session, got.Cost)
		}
	}
	apptest.Equal(t, "the renewed one", w.Read(agent, renewed.ID).Status, session.Active)
	apptest.Equal(t, "the dynamic one", w.Read(agent, dynamic.ID).Status, session.Active)
	if notified.Take() == "" {
		t.Error("no one was notified")
	}
	list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
	apptest.OK(t, err)
	if list.Total != 1 || list.Items[0].Type != "expired" || list.Items[0].Code != "time_expired" {
		t.Errorf("the feed has %+v", list.Items)
	}
	w.ExpectReconciled()
	apptest.Equal(t, "sold", len(w.Seller.Live()), 0)
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "dead", Want: 10_000_000})
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "dead", Up: 1_000_000, Want: 10_000_000})
	w.Clock.Advance(5 * time.Second)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "alive", Want: 5_000_000})
	w.Clock.Advance(traffic.ReclaimAfter - 5*time.Second)
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	apptest.Equal(t, "leased", w.Read(agent, v.ID).Usage.Leased, 15_000_000) // the last microsecond is the gateway's
	w.Clock.Advance(time.Microsecond)
	apptest.Concurrently(4, func(int) {
		if err := w.Tasks.Reclaim(t.Context()); err != nil {
			t.Error(err)
		}
	})
	u := w.Read(agent, v.ID).Usage
	if u.Leased != 5_000_000 || u.Used() != 1_000_000 {
		t.Errorf("the usage is %+v", u)
	}
	g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "dead", Up: 9_000_000, Connections: 1, Want: 10_000_000})
	if g.Outcome != traffic.Lost || w.Read(agent, v.ID).Usage.Used() != 1_000_000 {
		t.Errorf("what comes late is granted %+v", g)
	}
	apptest.Equal(t, "a new lease", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "new", Want: 1000}).Outcome, traffic.Open)
	apptest.Equal(t, "the other lease", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "alive", Up: 5_000_000, Want: 1000}).Outcome, traffic.Open)
}

func TestTidy(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	for n := range 1200 { // more than one run takes on
		w.Exec(`INSERT INTO idempotency_keys VALUES ('a', '/s', ?, ?, 's', 200, ?)`, fmt.Sprint(n), []byte{0}, fake.Start.UnixMicro())
	}
	w.Exec(fmt.Sprintf(`INSERT INTO changes (agent_id, session_id, at) WITH RECURSIVE k (n) AS (SELECT 1
		UNION ALL SELECT n + 1 FROM k WHERE n < 1200) SELECT 'a', 's', %d FROM k`, fake.Start.UnixMicro()))
	w.Report(agent, v.ID, "success")
	w.Clock.Advance(24*time.Hour + time.Second)
	w.Report(agent, v.ID, "block")
	_, err := w.CreateWith(agent, apptest.Local, apptest.Call("young"))
	apptest.OK(t, err)
	apptest.OK(t, w.Accounts.SetRateLimit(t.Context(), agent, 5))
	w.Clock.Advance(11 * time.Minute)
	apptest.OK(t, w.Accounts.SetRateLimit(t.Context(), agent, 6))
	apptest.OK(t, w.Tasks.Purge(t.Context()))
	apptest.Equal(t, "keys left", len(w.Column(`SELECT key FROM idempotency_keys`)), 1)
	left := 1
	if w.Postgres() {
		left++ // the newest of the old ones marks where the complete log begins
	}
	apptest.Equal(t, "changes left", len(w.Column(`SELECT seq FROM changes`)), left)
	events := func() int {
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		return list.Total
	}
	apptest.Equal(t, "events left", events(), 2)
	w.Clock.Set(fake.Start.Add(eventlog.Retention + time.Second))
	for range 2 {
		apptest.OK(t, w.Tasks.Purge(t.Context()))
	}
	apptest.Equal(t, "events left", events(), 1)
	w.Clock.Advance(25 * time.Hour)
	for range 2 {
		apptest.OK(t, w.Tasks.Purge(t.Context()))
	}
	apptest.Equal(t, "events left", events(), 0)
}

// What an endpoint was never asked for is not kept for as long as what it was.
func TestRefusedDeliveriesEndBeforeTheirEvents(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	agent := w.Register()
	apptest.OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for n, status := range []webhook.Status{webhook.Failed, webhook.Failed, webhook.Pending} {
			e := webhook.Event{ID: fmt.Sprint("evt_", n), AgentID: agent, Type: webhook.RechargePaid, At: fake.Start,
				Data: map[string]string{"order_id": "PAY", "status": "paid"}}
			d := webhook.NewDelivery(fmt.Sprint("dlv_", n), e, fake.Start)
			if d.Status = status; status == webhook.Failed {
				d.NextAttemptAt, d.Attempts = time.Time{}, n // the first was refused, the second was tried
			}
			if err := errors.Join(tx.Outbox().Append(ctx, e), tx.Webhooks().InsertDelivery(ctx, d)); err != nil {
				return err
			}
		}
		return nil
	}))
	left := func() string { return strings.Join(w.Column(`SELECT id FROM webhook_deliveries ORDER BY id`), " ") }
	w.Clock.Set(fake.Start.Add(webhook.KeepRefused))
	apptest.OK(t, w.Tasks.Purge(t.Context()))
	apptest.Equal(t, "deliveries within the time", left(), "dlv_0 dlv_1 dlv_2")
	w.Clock.Advance(time.Second)
	apptest.OK(t, w.Tasks.Purge(t.Context()))
	apptest.Equal(t, "deliveries after it", left(), "dlv_1 dlv_2")
	apptest.Equal(t, "events", len(w.Column(`SELECT seq FROM outbox`)), 3)
}

// After an outage of the database every lease looks old. Its gateway has the time to renew it first; only then is one
// that it did not renew taken back.
func TestNoLeaseIsTakenBackRightAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	leased := func() int64 { return w.Read(agent, v.ID).Usage.Leased }
	poll := func(seconds int) {
		t.Helper()
		for range 4 * seconds {
			w.Clock.Advance(time.Second / 4)
			apptest.OK(t, w.Poll(t.Context()))
			apptest.OK(t, w.Tasks.Reclaim(t.Context()))
		}
	}
	poll(10)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1000})
	poll(10)
	for outage, fails := range map[string]func(){
		"without an answer": func() {},
		"with errors": func() {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if w.Poll(gone) == nil {
				t.Error("the poll did not fail")
			}
		},
	} {
		w.Clock.Advance(20 * time.Second)
		fails()
		poll(3)
		apptest.Equal(t, "leased after an outage "+outage, leased(), 1000)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1000})
		poll(10)
		apptest.Equal(t, "leased since it was renewed", leased(), 1000)
	}
	w.Clock.Advance(20 * time.Second)
	poll(7)
	apptest.Equal(t, "leased by a gateway that is gone", leased(), 0)
}

// A failing store leaves every pass to be called again.
func TestPassesReportTheStore(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	w.UseBytes(v.ID, "l", 1_000_000)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1})
	w.Clock.Advance(15 * session.Day)
	for name, pass := range map[string]func() error{
		"trials":    func() error { return w.Tasks.ExpireTrials(t.Context()) },
		"settle":    func() error { return w.Tasks.Settle(t.Context()) },
		"take back": func() error { return w.Tasks.Reclaim(t.Context()) },
		"purge":     func() error { return w.Tasks.Purge(t.Context()) },
	} {
		before := w.Dump()
		w.Store.FailUpdates(1)
		apptest.ErrorIs(t, pass(), apptest.ErrStore)
		apptest.Equal(t, "the database after "+name, w.Dump(), before)
		w.Clock.Advance(time.Minute)
		apptest.OK(t, pass())
	}
	got := w.Read(agent, v.ID)
	if got.Usage.Leased != 0 || got.Money.Charged.Total() != apptest.Dollars("0.0004") {
		t.Errorf("it is %+v, %+v", got.Usage, got.Money)
	}
}

// Between the list of what is due and its unit the world moves.
func TestPassesLookAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	v, fixed := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Static)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1000})
	w.Clock.Advance(30 * session.Day)
	w.Store.Before = func() { w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: 500, Want: 1000}) }
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	apptest.Equal(t, "leased", w.Read(agent, v.ID).Usage.Leased, 1000)
	w.Store.Before = func() {
		w.Clock.Advance(-time.Second)
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		apptest.OK(t, err)
		w.Clock.Advance(time.Second)
	}
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	apptest.Equal(t, "the renewed one", w.Read(agent, fixed.ID).Status, session.Active)
	w.Clock.Advance(time.Hour)
	w.Store.Before = func() {
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: 900, Close: true})
	}
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "used", w.Read(agent, v.ID).Usage.Used(), 900)
}
