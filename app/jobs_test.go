package app_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// waitingOf lists the times at which jobs of a kind and subject wait.
func (w *world) waitingOf(kind, id string) (at []time.Time) {
	w.t.Helper()
	for _, j := range w.waiting() {
		if j.Kind == kind && j.SessionID == id {
			at = append(at, w.clock.Now().Add(j.After))
		}
	}
	return at
}

// due does every job whose time has come.
func (w *world) due() {
	w.t.Helper()
	ok(w.t, w.doAll(w.waiting()))
}

func TestAStaticSessionEndsByItsJob(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(100)
	v, renewed, gone := w.buy(agent, static), w.buy(agent, static), w.buy(agent, static)
	_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	ok(t, err)
	_, err = w.sessions.Terminate(t.Context(), agent, gone.ID)
	ok(t, err)
	if at := w.waitingOf(ports.ExpireSessionJob, v.ID); len(at) != 1 || !at[0].Equal(v.ExpiresAt) {
		t.Fatalf("jobs wait for %v, it expires at %v", at, v.ExpiresAt)
	}
	if at := w.waitingOf(ports.ExpireSessionJob, renewed.ID); len(at) != 2 || at[1].Sub(at[0]) != 30*session.Day {
		t.Fatalf("after a renewal jobs wait for %v", at)
	}
	w.clock.Advance(30 * session.Day)
	w.due()
	same(t, "it", w.read(agent, v.ID).Status, session.Expired)
	same(t, "the renewed one", w.read(agent, renewed.ID).Status, session.Active)
	same(t, "the one that ended before", w.read(agent, gone.ID).Status, session.Terminated)
	same(t, "jobs of the renewed one", len(w.waitingOf(ports.ExpireSessionJob, renewed.ID)), 1)
	w.clock.Advance(30 * session.Day)
	w.due()
	same(t, "the renewed one", w.read(agent, renewed.ID).Status, session.Expired)
	before := w.dump()
	for _, id := range []string{v.ID, renewed.ID, gone.ID} {
		ok(t, w.passes.ExpireSession(t.Context(), id)) // again
	}
	same(t, "the database", w.dump(), before)
}

// The clock that runs jobs may be ahead of the one that judges them.
func TestAJobThatComesTooEarlyComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	v := w.buy(agent, static)
	w.clock.Advance(30*session.Day - time.Second)
	w.exec(`DELETE FROM test_jobs WHERE kind = ?`, ports.ExpireSessionJob)
	ok(t, w.passes.ExpireSession(t.Context(), v.ID))
	same(t, "it", w.read(agent, v.ID).Status, session.Active)
	if at := w.waitingOf(ports.ExpireSessionJob, v.ID); len(at) != 1 || !at[0].Equal(v.ExpiresAt) {
		t.Errorf("jobs wait for %v", at)
	}
	w.clock.Advance(time.Second)
	w.due()
	same(t, "it", w.read(agent, v.ID).Status, session.Expired)
}

func TestALostJobIsFoundByTheSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	v := w.buy(agent, static)
	w.exec(`DELETE FROM test_jobs`)
	w.clock.Advance(30 * session.Day)
	ok(t, w.passes.Sweep(t.Context()))
	same(t, "it", w.read(agent, v.ID).Status, session.Expired)
	b, err := w.wallet.Balance(t.Context(), agent)
	ok(t, err)
	same(t, "the trial credit", b.Wallet.Available.Trial, 0)
}

func TestATrialEndsByItsJob(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(5)
	if at := w.waitingOf(ports.ExpireTrialJob, agent); len(at) != 1 || at[0].Sub(w.clock.Now()) != 14*session.Day {
		t.Fatalf("jobs wait for %v", at)
	}
	ok(t, w.passes.ExpireTrial(t.Context(), agent))
	same(t, "the balance before", w.balance(agent), dollars("15"))
	w.clock.Advance(14 * session.Day)
	w.due()
	b, err := w.wallet.Balance(t.Context(), agent)
	ok(t, err)
	if !b.Wallet.TrialExpired || b.Wallet.Balance() != dollars("5") {
		t.Errorf("the wallet is %+v", b.Wallet)
	}
	none := open(t, setup{trial: -1})
	none.register()
	same(t, "jobs without a trial", len(none.waiting()), 0)
}

func TestAnHourIsChargedByItsJob(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	v := w.buy(agent, local)
	same(t, "jobs of a purchase", len(w.waitingOf(ports.SettleSessionJob, v.ID)), 0)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "l", Want: 500_000_000})
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "l", Up: 50_000_000, Want: 50_000_000})
	at := w.waitingOf(ports.SettleSessionJob, v.ID)
	if len(at) != 1 || !at[0].Equal(w.clock.Now().Truncate(time.Hour).Add(time.Hour)) {
		t.Fatalf("jobs wait for %v", at)
	}
	ok(t, w.passes.SettleSession(t.Context(), v.ID)) // before its time
	same(t, "charged before the hour", w.read(agent, v.ID).Money.Charged.Total(), 0)
	w.clock.Advance(at[0].Sub(w.clock.Now()))
	w.due()
	same(t, "charged", w.read(agent, v.ID).Money.Charged.Total(), dollars("0.02"))
	before := w.dump()
	ok(t, w.passes.SettleSession(t.Context(), v.ID))
	same(t, "the database", w.dump(), before)
}

func TestASessionThatEndsWithALeaseIsSettledByItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, local)
	w.renew(traffic.Ask{SessionID: v.ID, Lease: "dead", Want: 10_000_000})
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	same(t, "jobs", len(w.waitingOf(ports.SettleSessionJob, v.ID)), 1)
	w.clock.Advance(20 * time.Second)
	w.due() // the lease is still out
	if held := w.read(agent, v.ID).Money.Held.Total(); held == 0 || len(w.waitingOf(ports.SettleSessionJob, v.ID)) != 1 {
		t.Errorf("held are %s, jobs are %+v", held, w.waiting())
	}
	ok(t, w.passes.Reclaim(t.Context()))
	w.clock.Advance(20 * time.Second)
	w.due()
	same(t, "the balance", w.balance(agent), dollars("10"))
}

// A session that cannot be delivered gives its money back, unless something may
// have been bought for it.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]session.Status{localLater: session.Failed, remoteLater: session.Creating} {
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, product)
		ok(t, w.driver.GiveUp(context.Background(), v.ID))
		got := w.read(agent, v.ID)
		same(t, product, got.Status, want)
		if want == session.Failed && (w.balance(agent) != dollars("10") || got.Failure.Code != ports.ErrProvider.Code) {
			t.Errorf("the balance is %s, the failure %+v", w.balance(agent), got.Failure)
		}
		ok(t, w.work())
		if want == session.Creating {
			same(t, product, w.read(agent, v.ID).Status, session.Active)
		}
		ok(t, w.driver.GiveUp(context.Background(), v.ID)) // later: nothing
	}
}
