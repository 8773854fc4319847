package maintenance_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// jobTimes lists the times at which jobs of a kind and subject wait.
func jobTimes(w *apptest.World, kind, id string) (at []time.Time) {
	w.T.Helper()
	for _, j := range w.TimedJobs() {
		if j.Kind == kind && j.SessionID == id {
			at = append(at, w.Clock.Now().Add(j.After))
		}
	}
	return at
}

// runTimedJobs does every job whose time has come.
func runTimedJobs(w *apptest.World) {
	w.T.Helper()
	apptest.OK(w.T, w.RunJobs(w.TimedJobs()))
}

func TestAStaticSessionEndsByItsJob(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(100)
	v, renewed, gone := w.Buy(agent, apptest.Static), w.Buy(agent, apptest.Static), w.Buy(agent, apptest.Static)
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: renewed.ID})
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(t.Context(), agent, gone.ID)
	apptest.OK(t, err)
	if at := jobTimes(w, ports.ExpireSessionJob, v.ID); len(at) != 1 || !at[0].Equal(v.ExpiresAt) {
		t.Fatalf("jobs wait for %v, it expires at %v", at, v.ExpiresAt)
	}
	if at := jobTimes(w, ports.ExpireSessionJob, renewed.ID); len(at) != 2 || at[1].Sub(at[0]) != 30*session.Day {
		t.Fatalf("after a renewal jobs wait for %v", at)
	}
	w.Clock.Advance(30 * session.Day)
	runTimedJobs(w)
	apptest.Equal(t, "it", w.Read(agent, v.ID).Status, session.Expired)
	apptest.Equal(t, "the renewed one", w.Read(agent, renewed.ID).Status, session.Active)
	apptest.Equal(t, "the one that ended before", w.Read(agent, gone.ID).Status, session.Terminated)
	apptest.Equal(t, "jobs of the renewed one", len(jobTimes(w, ports.ExpireSessionJob, renewed.ID)), 1)
	w.Clock.Advance(30 * session.Day)
	runTimedJobs(w)
	apptest.Equal(t, "the renewed one", w.Read(agent, renewed.ID).Status, session.Expired)
	before := w.Dump()
	for _, id := range []string{v.ID, renewed.ID, gone.ID} {
		apptest.OK(t, w.Tasks.ExpireSession(t.Context(), id)) // again
	}
	apptest.Equal(t, "the database", w.Dump(), before)
}

// The clock that runs jobs may be ahead of the one that judges them.
func TestAJobThatComesTooEarlyComesAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	v := w.Buy(agent, apptest.Static)
	w.Clock.Advance(30*session.Day - time.Second)
	w.Exec(`DELETE FROM test_jobs WHERE kind = ?`, ports.ExpireSessionJob)
	apptest.OK(t, w.Tasks.ExpireSession(t.Context(), v.ID))
	apptest.Equal(t, "it", w.Read(agent, v.ID).Status, session.Active)
	if at := jobTimes(w, ports.ExpireSessionJob, v.ID); len(at) != 1 || !at[0].Equal(v.ExpiresAt) {
		t.Errorf("jobs wait for %v", at)
	}
	w.Clock.Advance(time.Second)
	runTimedJobs(w)
	apptest.Equal(t, "it", w.Read(agent, v.ID).Status, session.Expired)
}

func TestALostJobIsFoundByTheSweep(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	v := w.Buy(agent, apptest.Static)
	w.Exec(`DELETE FROM test_jobs`)
	w.Clock.Advance(30 * session.Day)
	apptest.OK(t, w.Tasks.Sweep(t.Context()))
	apptest.Equal(t, "it", w.Read(agent, v.ID).Status, session.Expired)
	b, err := w.Wallet.Balance(t.Context(), agent)
	apptest.OK(t, err)
	apptest.Equal(t, "the trial credit", b.Wallet.Available.Trial, 0)
}

func TestATrialEndsByItsJob(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(5)
	if at := jobTimes(w, ports.ExpireTrialJob, agent); len(at) != 1 || at[0].Sub(w.Clock.Now()) != 14*session.Day {
		t.Fatalf("jobs wait for %v", at)
	}
	apptest.OK(t, w.Tasks.ExpireTrial(t.Context(), agent))
	apptest.Equal(t, "the balance before", w.Balance(agent), apptest.Dollars("15"))
	w.Clock.Advance(14 * session.Day)
	runTimedJobs(w)
	b, err := w.Wallet.Balance(t.Context(), agent)
	apptest.OK(t, err)
	if !b.Wallet.TrialExpired || b.Wallet.Balance() != apptest.Dollars("5") {
		t.Errorf("the wallet is %+v", b.Wallet)
	}
	none := apptest.Open(t, apptest.Options{TrialBalance: -1})
	none.Register()
	apptest.Equal(t, "jobs without a trial", len(none.TimedJobs()), 0)
}

func TestAnHourIsChargedByItsJob(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	apptest.Equal(t, "jobs of a purchase", len(jobTimes(w, ports.SettleSessionJob, v.ID)), 0)
	w.RenewLease(traffic.Ask{SessionID: v.ID, Lease: "l", Want: 500_000_000})
	w.RenewLease(traffic.Ask{SessionID: v.ID, Lease: "l", Up: 50_000_000, Want: 50_000_000})
	at := jobTimes(w, ports.SettleSessionJob, v.ID)
	if len(at) != 1 || !at[0].Equal(w.Clock.Now().Truncate(time.Hour).Add(time.Hour)) {
		t.Fatalf("jobs wait for %v", at)
	}
	apptest.OK(t, w.Tasks.SettleSession(t.Context(), v.ID)) // before its time
	apptest.Equal(t, "charged before the hour", w.Read(agent, v.ID).Money.Charged.Total(), 0)
	w.Clock.Advance(at[0].Sub(w.Clock.Now()))
	runTimedJobs(w)
	apptest.Equal(t, "charged", w.Read(agent, v.ID).Money.Charged.Total(), apptest.Dollars("0.02"))
	before := w.Dump()
	apptest.OK(t, w.Tasks.SettleSession(t.Context(), v.ID))
	apptest.Equal(t, "the database", w.Dump(), before)
}

func TestASessionThatEndsWithALeaseIsSettledByItsJob(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	w.RenewLease(traffic.Ask{SessionID: v.ID, Lease: "dead", Want: 10_000_000})
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "jobs", len(jobTimes(w, ports.SettleSessionJob, v.ID)), 1)
	w.Clock.Advance(20 * time.Second)
	runTimedJobs(w) // the lease is still out
	if held := w.Read(agent, v.ID).Money.Held.Total(); held == 0 || len(jobTimes(w, ports.SettleSessionJob, v.ID)) != 1 {
		t.Errorf("held are %s, jobs are %+v", held, w.TimedJobs())
	}
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	w.Clock.Advance(20 * time.Second)
	runTimedJobs(w)
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
}

// A session that cannot be delivered gives its money back, unless something may
// have been bought for it.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]session.Status{apptest.LocalAsync: session.Failed, apptest.RemoteAsync: session.Creating} {
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, product)
		apptest.OK(t, w.Driver.GiveUp(context.Background(), v.ID))
		got := w.Read(agent, v.ID)
		apptest.Equal(t, product, got.Status, want)
		if want == session.Failed && (w.Balance(agent) != apptest.Dollars("10") || got.Failure.Code != ports.ErrProvider.Code) {
			t.Errorf("the balance is %s, the failure %+v", w.Balance(agent), got.Failure)
		}
		apptest.OK(t, w.RunOrders())
		if want == session.Creating {
			apptest.Equal(t, product, w.Read(agent, v.ID).Status, session.Active)
		}
		apptest.OK(t, w.Driver.GiveUp(context.Background(), v.ID)) // later: nothing
	}
}
