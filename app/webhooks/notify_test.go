package webhooks_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestNotificationsOfSessions(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	_, err := w.Wallet.Adjust(t.Context(), agent, 100*domain.Dollar, "for the test")
	apptest.OK(t, err)
	t.Run("one that is delivered at once is active", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		expectEvents(w, agent, "session.active status=active")
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		expectEvents(w, agent, "session.terminated status=terminated status_reason=agent_request")
		_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		expectEvents(w, agent, "")
	})
	t.Run("one that is delivered later is active then", func(t *testing.T) {
		w.Buy(agent, apptest.StaticAsync)
		expectEvents(w, agent, "")
		apptest.OK(t, w.RunOrders())
		expectEvents(w, agent, "session.active status=active")
	})
	t.Run("one that cannot be delivered failed", func(t *testing.T) {
		w.Buy(agent, apptest.RemoteAsync)
		w.Seller.Next(fake.Provision, fake.Refuse(procurement.Temporary))
		apptest.OK(t, w.RunOrders())
		expectEvents(w, agent, "session.failed status=failed status_reason=provider_failed")
	})
	t.Run("a rotation by call and a timed one", func(t *testing.T) {
		v := w.BuyTimed(agent, apptest.Local, time.Minute)
		deleteEvents(w)
		_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: health.RotationCaptcha})
		apptest.OK(t, err)
		expectEvents(w, agent, "session.rotated reason=captcha status=active")
		w.Clock.Advance(time.Minute)
		_, err = w.Traffic.RotateDue(t.Context(), v.ID)
		apptest.OK(t, err)
		expectEvents(w, agent, "session.rotated reason=scheduled status=active")
		_, err = w.Traffic.RotateDue(t.Context(), v.ID)
		apptest.OK(t, err)
		expectEvents(w, agent, "")
	})
	t.Run("traffic at 80 and at 95 percent, once each, and its end", func(t *testing.T) {
		v := w.BuySmall(agent)
		deleteEvents(w)
		for _, c := range []struct {
			bytes int64
			want  string
		}{
			{79_999_999, ""}, {1, "session.traffic_low percent=80 status=active"}, {14_999_999, ""},
			{1, "session.traffic_low percent=95 status=active"}, {4_999_999, ""},
			{1, "session.expired status=expired status_reason=traffic_exhausted"},
		} {
			useBytes(w, v.ID, c.bytes)
			expectEvents(w, agent, c.want)
		}
		v = w.BuySmall(agent)
		deleteEvents(w)
		useBytes(w, v.ID, 96_000_000)
		expectEvents(w, agent, "session.traffic_low percent=80 status=active; session.traffic_low percent=95 status=active")
	})
	t.Run("a risk level that changed for good, from either source", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		deleteEvents(w)
		w.Report(agent, v.ID, "success")
		expectEvents(w, agent, "")
		for range 5 {
			w.Report(agent, v.ID, "block")
		}
		apptest.Equal(t, "the first change", eventList(w, agent)[:len("session.health_changed previous_risk_level=low")], "session.health_changed previous_risk_level=low")
		deleteEvents(w)
		w.Report(agent, v.ID, "block")
		expectEvents(w, agent, "")
		other := w.Buy(agent, apptest.Local)
		deleteEvents(w)
		for range 6 {
			w.Observe(other.ID, "example.com", health.Timeout)
		}
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.Observer.Flush(t.Context()))
		if eventList(w, agent) == "" {
			t.Error("no event of what the gateway observed")
		}
		deleteEvents(w)
	})
	t.Run("an agent that is shut out", func(t *testing.T) {
		apptest.OK(t, w.Accounts.Disable(t.Context(), agent, "abuse"))
		for _, e := range listDeliveries(w, agent) {
			apptest.Equal(t, "the type", string(e.Type), "session.terminated")
		}
	})
}

// useBytes lets bytes pass on leases that are closed behind them.
func useBytes(w *apptest.World, id string, bytes int64) {
	w.T.Helper()
	for n := 0; bytes > 0; n++ {
		lease := w.IDs.New("l")
		g := w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Want: bytes})
		used := min(g.Granted, bytes)
		w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Up: used, Close: true})
		bytes -= used
	}
}

func TestSessionsThatWillEndSoonAreNotifiedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, quiet := w.RegisterWithWebhook(), w.RegisterFunded(10)
	_, err := w.Wallet.Adjust(t.Context(), agent, 100*domain.Dollar, "for the test")
	apptest.OK(t, err)
	v := w.Buy(agent, apptest.Static)
	w.Buy(quiet, apptest.Static)
	deleteEvents(w)
	remind := func(want string) {
		t.Helper()
		apptest.OK(t, w.Webhooks.RemindSessions(t.Context()))
		expectEvents(w, agent, want)
		apptest.Equal(t, "another was notified", eventList(w, quiet), "")
	}
	remind("")
	w.Clock.Advance(29*session.Day - time.Microsecond)
	remind("")
	w.Clock.Advance(time.Microsecond)
	remind("session.expiring expires_at=" + v.ExpiresAt.Format(time.RFC3339) + " status=active")
	remind("")
	w.Clock.Advance(time.Hour)
	remind("")
	_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	deleteEvents(w)
	remind("")
	w.Clock.Advance(29*session.Day + 23*time.Hour)
	remind("session.expiring expires_at=" + v.ExpiresAt.Add(30*session.Day).Format(time.RFC3339) + " status=active")
	w.Clock.Advance(session.Day)
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	expectEvents(w, agent, "session.expired status=expired status_reason=time_expired")
	remind("")
}

// Events of many sessions that end at one moment take as many runs as needed.
func TestRemindersAreSentInBatches(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	if w.Postgres() {
		t.Skip("its rows are made by SQL of SQLite")
	}
	agent := w.RegisterWithWebhook()
	w.Exec(`DROP INDEX sessions_agent`)
	const first, second = 700, 300
	w.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		INSERT INTO sessions (id, agent_id, ord, type, product_no, created_at, status, reason, provider, quantity, days, bytes, price,
		protocol, country, city, rotation_mode, rotation_interval, rotations, rotated_at, rotation_next_at, exits, held_trial, held_own,
		charged_trial, charged_own, refunded_trial, refunded_own, failure_code, failure_message, activated_at, expires_at, ended_at)
		SELECT 'sess_' || i, ?1, i, 'static', 'sta_isp_1', 0, 'active', '', 'embedded', 1, 30, 0, 0, 'http', '', '',
		'', 0, 0, 0, 0, '10.1.' || (i / 250) || '.' || (i % 250), 0, 0, 0, 0, 0, 0, '', '', 1, ?3 + CASE WHEN i <= 300 THEN 0 WHEN i <= ?4 THEN 1 ELSE 2 END, 0
		FROM n`, agent, first+second, w.Clock.Now().Add(time.Hour).UnixMicro(), first)
	for range 5 {
		apptest.OK(t, w.Webhooks.RemindSessions(t.Context()))
	}
	apptest.Equal(t, "notified", w.Column(`SELECT COUNT(DISTINCT json_extract(data, '$.session_id')) || ' ' || COUNT(*) FROM outbox`)[0], "1000 1000")
	w.Exec(`DELETE FROM sessions`)
}

func TestATrialThatWillEndIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, funded := w.RegisterWithWebhook(), w.RegisterWithWebhook()
	w.Register()
	_, err := w.Wallet.Adjust(t.Context(), funded, apptest.Dollars("1"), "test")
	apptest.OK(t, err)
	w.Clock.Advance(11*session.Day - time.Microsecond)
	apptest.OK(t, w.Webhooks.RemindTrials(t.Context()))
	expectEvents(w, agent, "")
	w.Clock.Advance(time.Microsecond)
	for _, want := range []string{"trial.expiring expires_at=" + w.Clock.Now().Add(3*session.Day).Format(time.RFC3339), ""} {
		apptest.OK(t, w.Webhooks.RemindTrials(t.Context()))
		expectEvents(w, agent, want)
	}
	apptest.Equal(t, "one with money of its own was notified", eventList(w, funded), "")
}

func TestNotificationsOfMoney(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	low := "balance.low threshold=1"
	t.Run("a balance that falls below 1.00, once a day", func(t *testing.T) {
		for _, c := range []struct{ amount, want string }{
			{"-9", ""}, {"-0.000001", low}, {"0.000001", ""}, {"-0.000001", ""}, {"-0.5", ""}, {"9.500001", ""},
		} {
			_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars(c.amount), "test")
			apptest.OK(t, err)
			expectEvents(w, agent, c.want)
		}
		w.Clock.Advance(session.Day)
		v := buyTraffic(w, agent, "24")
		expectEvents(w, agent, low+"; session.active status=active")
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		w.Clock.Advance(14 * session.Day)
		deleteEvents(w)
		apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	})
	t.Run("each threshold of a budget, once a day", func(t *testing.T) {
		agent := w.RegisterWithWebhook()
		w.SetBudget(agent, "4", "8", false)
		_, err := w.Wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Thresholds: &[]int{50, 90, 100}})
		apptest.OK(t, err)
		buy := func(gb, want string) sessions.View {
			v := buyTraffic(w, agent, gb)
			if want != "" {
				want += "; "
			}
			expectEvents(w, agent, want+"session.active status=active")
			return v
		}
		buy("4.9", "")
		v := buy("0.1", "budget.threshold limit=daily threshold=50")
		_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		deleteEvents(w)
		buy("0.1", "")
		buy("5", "budget.threshold limit=daily threshold=90; budget.threshold limit=daily threshold=100; budget.threshold limit=total threshold=50")
		w.Clock.Advance(session.Day)
		buy("5", "budget.threshold limit=daily threshold=50")
	})
}

// buyTraffic buys so much traffic at 0.40.
func buyTraffic(w *apptest.World, agent, gb string) sessions.View {
	w.T.Helper()
	f := apptest.Form(apptest.Local)
	f.Bytes = apptest.Gigabytes(gb)
	d, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(w.T, err)
	return d.View
}

func TestARotatedSecretIsNotified(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterWithWebhook()
	_, _, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: agent}, "")
	apptest.OK(t, err)
	expectEvents(w, agent, "account.secret_rotated")
}

// An event is stored with its change or not at all, and so are its delivery and
// its job.
func TestEventsFollowTheirUnit(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterWithWebhook()
	v := w.Buy(agent, apptest.Local)
	before := w.Dump()
	w.Store.FailUpdates(1)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.ErrorIs(t, err, apptest.ErrStore)
	apptest.Equal(t, "the database", w.Dump(), before)
	_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "notified", eventList(w, agent), "session.active status=active; session.terminated status=terminated status_reason=agent_request")
	apptest.Equal(t, "jobs", len(deliveryJobs(w)), 2)
}

func TestWithoutAWebhookNothingIsSent(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.BuySmall(agent)
	useBytes(w, v.ID, 96_000_000)
	_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	_, _, err = w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: agent}, "")
	apptest.OK(t, err)
	_, err = w.Accounts.Update(t.Context(), accounts.Update{AgentID: agent, Update: account.Update{Name: new("other")}})
	apptest.OK(t, err)
	for _, table := range []string{"webhook_deliveries", "webhook_states"} {
		apptest.Equal(t, table, w.Column(`SELECT COUNT(*) FROM "` + table + `"`)[0], "0")
	}
	apptest.Equal(t, "the feed", strings.Join(w.Column(`SELECT type FROM outbox WHERE agent_id = ? ORDER BY seq`, agent), " "),
		"session.active session.traffic_low session.traffic_low session.rotated account.secret_rotated")
	apptest.Equal(t, "jobs", len(deliveryJobs(w)), 0)
}
