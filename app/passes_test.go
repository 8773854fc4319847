package app_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/fake"
)

func TestExpireSessions(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(100)
	v, far, dynamic := w.buy(agent, static), w.buy(agent, remoteStatic), w.buy(agent, local)
	renewed := w.buy(agent, static)
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	ok(t, err)
	told := &witness{}
	w.Watch(told)
	w.clock.Advance(30*session.Day - time.Microsecond)
	before := w.dump()
	ok(t, w.passes.ExpireSessions(t.Context()))
	same(t, "the database", w.dump(), before)
	w.clock.Advance(time.Microsecond)
	parallel(4, func(int) {
		if err := w.passes.ExpireSessions(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, id := range []string{v.ID, far.ID} {
		got := w.read(agent, id)
		if got.Status != session.Expired || got.Reason != session.TimeExpired || got.Cost != (sessions.Cost{Charged: dollars("1")}) {
			t.Errorf("it is %+v, %+v", got.Session, got.Cost)
		}
	}
	same(t, "the renewed one", w.read(agent, renewed.ID).Status, session.Active)
	same(t, "the dynamic one", w.read(agent, dynamic.ID).Status, session.Active)
	if told.take() == "" {
		t.Error("nobody was told")
	}
	list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
	ok(t, err)
	if list.Total != 1 || list.Items[0].Type != "expired" || list.Items[0].Code != "time_expired" {
		t.Errorf("the feed has %+v", list.Items)
	}
	w.reconciled()
	same(t, "sold", len(w.seller.Live()), 0)
}

// One that fails does not keep the others waiting, and is tried again.
func TestAPassGoesOnAfterAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	first, second := w.buy(agent, static), w.buy(agent, static)
	w.clock.Advance(31 * session.Day)
	w.store.failUpdates(1)
	refused(t, w.passes.ExpireSessions(t.Context()), errStore)
	if a, b := w.read(agent, first.ID).Status, w.read(agent, second.ID).Status; (a == session.Active) == (b == session.Active) {
		t.Errorf("they are %s and %s", a, b)
	}
	ok(t, w.passes.ExpireSessions(t.Context()))
	if a, b := w.read(agent, first.ID).Status, w.read(agent, second.ID).Status; a != session.Expired || b != session.Expired {
		t.Errorf("they are %s and %s", a, b)
	}
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	v := w.buy(agent, local)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "dead", Want: 10_000_000})
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "dead", Up: 1_000_000, Want: 10_000_000})
	w.clock.Advance(5 * time.Second)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "alive", Want: 5_000_000})
	w.clock.Advance(traffic.ReclaimAfter - 5*time.Second)
	ok(t, w.passes.Reclaim(t.Context()))
	same(t, "leased", w.read(agent, v.ID).Usage.Leased, 15_000_000) // the last microsecond is the gateway's
	w.clock.Advance(time.Microsecond)
	parallel(4, func(int) {
		if err := w.passes.Reclaim(t.Context()); err != nil {
			t.Error(err)
		}
	})
	u := w.read(agent, v.ID).Usage
	if u.Leased != 5_000_000 || u.Used() != 1_000_000 {
		t.Errorf("the usage is %+v", u)
	}
	g := w.renew(traffic.Ask{SessionID: v.ID, Lease: "dead", Up: 9_000_000, Connections: 1, Want: 10_000_000})
	if g.Outcome != traffic.Lost || w.read(agent, v.ID).Usage.Used() != 1_000_000 {
		t.Errorf("what comes late is granted %+v", g)
	}
	same(t, "a new lease", w.renew(traffic.Ask{SessionID: v.ID, Lease: "new", Want: 1000}).Outcome, traffic.Open)
	same(t, "the other lease", w.renew(traffic.Ask{SessionID: v.ID, Lease: "alive", Up: 5_000_000, Want: 1000}).Outcome, traffic.Open)
}

func TestTidy(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	v := w.buy(agent, local)
	for n := range 1200 { // more than one run takes on
		w.exec(`INSERT INTO idempotency_keys VALUES ('a', '/s', ?, ?, 's', 200, ?)`, fmt.Sprint(n), []byte{0}, fake.Start.UnixMicro())
	}
	w.report(agent, v.ID, "success")
	w.clock.Advance(24*time.Hour + time.Second)
	w.report(agent, v.ID, "block")
	_, err := w.createWith(agent, local, key("young"))
	ok(t, err)
	ok(t, w.accounts.SetRateLimit(t.Context(), agent, 5))
	w.clock.Advance(11 * time.Minute)
	ok(t, w.accounts.SetRateLimit(t.Context(), agent, 6))
	ok(t, w.passes.Purge(t.Context()))
	same(t, "keys left", len(w.texts(`SELECT key FROM idempotency_keys`)), 1)
	left := 1
	if w.postgres() {
		left++ // the newest of the old ones marks where the complete log begins
	}
	same(t, "changes left", len(w.texts(`SELECT seq FROM changes`)), left)
	events := func() int {
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		return list.Total
	}
	same(t, "events left", events(), 2)
	w.clock.Set(fake.Start.Add(eventlog.Retention + time.Second))
	for range 2 {
		ok(t, w.passes.Purge(t.Context()))
	}
	same(t, "events left", events(), 1)
	w.clock.Advance(25 * time.Hour)
	for range 2 {
		ok(t, w.passes.Purge(t.Context()))
	}
	same(t, "events left", events(), 0)
}

// A failing store leaves every pass to be called again.
func TestPassesReportTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, local)
	w.use(v.ID, "l", 1_000_000)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1})
	w.clock.Advance(15 * session.Day)
	for name, pass := range map[string]func() error{
		"trials":    func() error { return w.passes.ExpireTrials(t.Context()) },
		"settle":    func() error { return w.passes.Settle(t.Context()) },
		"take back": func() error { return w.passes.Reclaim(t.Context()) },
		"tidy":      func() error { return w.passes.Purge(t.Context()) },
	} {
		before := w.dump()
		w.store.failUpdates(1)
		refused(t, pass(), errStore)
		same(t, "the database after "+name, w.dump(), before)
		ok(t, pass())
	}
	got := w.read(agent, v.ID)
	if got.Usage.Leased != 0 || got.Money.Charged.Total() != dollars("0.0004") {
		t.Errorf("it is %+v, %+v", got.Usage, got.Money)
	}
}

// Between the list of what is due and its unit the world moves.
func TestPassesLookAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	v, fixed := w.buy(agent, local), w.buy(agent, static)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1000})
	w.clock.Advance(30 * session.Day)
	w.store.before = func() { w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Up: 500, Want: 1000}) }
	ok(t, w.passes.Reclaim(t.Context()))
	same(t, "leased", w.read(agent, v.ID).Usage.Leased, 1000)
	w.store.before = func() {
		w.clock.Advance(-time.Second)
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: fixed.ID})
		ok(t, err)
		w.clock.Advance(time.Second)
	}
	ok(t, w.passes.ExpireSessions(t.Context()))
	same(t, "the renewed one", w.read(agent, fixed.ID).Status, session.Active)
	w.clock.Advance(time.Hour)
	w.store.before = func() {
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Up: 900, Close: true})
	}
	ok(t, w.passes.Settle(t.Context()))
	same(t, "used", w.read(agent, v.ID).Usage.Used(), 900)
}
