package app_test

import (
	"context"
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
	"agentproxy/test/fake"
)

// expectEvents checks the webhook events of an agent since the last call.
func (w *world) expectEvents(agent, want string) {
	w.t.Helper()
	same(w.t, "told", w.receivedEvents(agent), want)
	w.forget()
}

func TestWhatSessionsTell(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	_, err := w.wallet.Adjust(t.Context(), agent, 100*domain.Dollar, "for the test")
	ok(t, err)
	t.Run("one that is delivered at once is active", func(t *testing.T) {
		v := w.buy(agent, local)
		w.expectEvents(agent, "session.active status=active")
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.expectEvents(agent, "session.terminated status=terminated status_reason=agent_request")
		_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.expectEvents(agent, "")
	})
	t.Run("one that is delivered later is active then", func(t *testing.T) {
		w.buy(agent, staticLater)
		w.expectEvents(agent, "")
		ok(t, w.work())
		w.expectEvents(agent, "session.active status=active")
	})
	t.Run("one that cannot be delivered failed", func(t *testing.T) {
		w.buy(agent, remoteLater)
		w.seller.Next(fake.Provision, fake.Refuse(procurement.Temporary))
		ok(t, w.work())
		w.expectEvents(agent, "session.failed status=failed status_reason=provider_failed")
	})
	t.Run("a rotation by call and a timed one", func(t *testing.T) {
		v := w.timed(agent, local, time.Minute)
		w.forget()
		_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID, Reason: health.RotationCaptcha})
		ok(t, err)
		w.expectEvents(agent, "session.rotated reason=captcha status=active")
		w.clock.Advance(time.Minute)
		_, err = w.traffic.RotateDue(t.Context(), v.ID)
		ok(t, err)
		w.expectEvents(agent, "session.rotated reason=scheduled status=active")
		_, err = w.traffic.RotateDue(t.Context(), v.ID)
		ok(t, err)
		w.expectEvents(agent, "")
	})
	t.Run("traffic at 80 and at 95 percent, once each, and its end", func(t *testing.T) {
		v := w.small(agent)
		w.forget()
		for _, c := range []struct {
			bytes int64
			want  string
		}{
			{79_999_999, ""}, {1, "session.traffic_low percent=80 status=active"}, {14_999_999, ""},
			{1, "session.traffic_low percent=95 status=active"}, {4_999_999, ""},
			{1, "session.expired status=expired status_reason=traffic_exhausted"},
		} {
			w.useAll(v.ID, c.bytes)
			w.expectEvents(agent, c.want)
		}
		v = w.small(agent)
		w.forget()
		w.useAll(v.ID, 96_000_000)
		w.expectEvents(agent, "session.traffic_low percent=80 status=active; session.traffic_low percent=95 status=active")
	})
	t.Run("a risk level that changed for good, whoever saw it", func(t *testing.T) {
		v := w.buy(agent, local)
		w.forget()
		w.report(agent, v.ID, "success")
		w.expectEvents(agent, "")
		for range 5 {
			w.report(agent, v.ID, "block")
		}
		same(t, "the first change", w.receivedEvents(agent)[:len("session.health_changed previous_risk_level=low")], "session.health_changed previous_risk_level=low")
		w.forget()
		w.report(agent, v.ID, "block")
		w.expectEvents(agent, "")
		other := w.buy(agent, local)
		w.forget()
		for range 6 {
			w.saw(other.ID, "example.com", health.Timeout)
		}
		w.clock.Advance(time.Minute)
		ok(t, w.observer.Flush(t.Context()))
		if w.receivedEvents(agent) == "" {
			t.Error("nothing is told of what the gateway saw")
		}
		w.forget()
	})
	t.Run("whoever is shut out", func(t *testing.T) {
		ok(t, w.accounts.Disable(t.Context(), agent, "abuse"))
		for _, e := range w.deliveries(agent) {
			same(t, "the type", string(e.Type), "session.terminated")
		}
	})
}

// useAll lets bytes pass on leases that are closed behind them.
func (w *world) useAll(id string, bytes int64) {
	w.t.Helper()
	for n := 0; bytes > 0; n++ {
		lease := w.ids.New("l")
		g := w.renew(traffic.Ask{SessionID: id, Lease: lease, Want: bytes})
		used := min(g.Granted, bytes)
		w.renew(traffic.Ask{SessionID: id, Lease: lease, Up: used, Close: true})
		bytes -= used
	}
}

func TestSessionsThatWillEndSoonAreToldOnce(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent, quiet := w.hooked(), w.rich(10)
	_, err := w.wallet.Adjust(t.Context(), agent, 100*domain.Dollar, "for the test")
	ok(t, err)
	v := w.buy(agent, static)
	w.buy(quiet, static)
	w.forget()
	remind := func(want string) {
		t.Helper()
		ok(t, w.webhooks.RemindSessions(t.Context()))
		w.expectEvents(agent, want)
		same(t, "told another", w.receivedEvents(quiet), "")
	}
	remind("")
	w.clock.Advance(29*session.Day - time.Microsecond)
	remind("")
	w.clock.Advance(time.Microsecond)
	remind("session.expiring expires_at=" + v.ExpiresAt.Format(time.RFC3339) + " status=active")
	remind("")
	w.clock.Advance(time.Hour)
	remind("")
	_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	w.forget()
	remind("")
	w.clock.Advance(29*session.Day + 23*time.Hour)
	remind("session.expiring expires_at=" + v.ExpiresAt.Add(30*session.Day).Format(time.RFC3339) + " status=active")
	w.clock.Advance(session.Day)
	ok(t, w.passes.ExpireSessions(t.Context()))
	w.expectEvents(agent, "session.expired status=expired status_reason=time_expired")
	remind("")
}

// Events of many sessions that end at one moment take as many runs as needed.
func TestRemindersAreToldInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if w.postgres() {
		t.Skip("its rows are made by SQL of SQLite")
	}
	agent := w.hooked()
	w.exec(`DROP INDEX sessions_agent`)
	const first, second = 700, 300
	w.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		INSERT INTO sessions SELECT NULL, 'sess_' || i, ?1, i, 'static', 'sta_isp_1', 0, 'active', '', 'embedded', 1, 30, 0, 0, 'http', '', '',
		'', 0, 0, 0, 0, '10.1.' || (i / 250) || '.' || (i % 250), 0, 0, 0, 0, 0, 0, '', '', 1, ?3 + CASE WHEN i <= 300 THEN 0 WHEN i <= ?4 THEN 1 ELSE 2 END, 0,
		0, 0, 0, 0, 0, 0 FROM n`, agent, first+second, w.clock.Now().Add(time.Hour).UnixMicro(), first)
	for range 5 {
		ok(t, w.webhooks.RemindSessions(t.Context()))
	}
	same(t, "told", w.texts(`SELECT COUNT(DISTINCT json_extract(data, '$.session_id')) || ' ' || COUNT(*) FROM outbox`)[0], "1000 1000")
	w.exec(`DELETE FROM sessions`)
}

func TestATrialThatWillEndIsToldOnce(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent, funded := w.hooked(), w.hooked()
	w.register()
	w.exec(`UPDATE wallets SET funded = 1 WHERE agent_id = ?`, funded)
	w.clock.Advance(11*session.Day - time.Microsecond)
	ok(t, w.webhooks.RemindTrials(t.Context()))
	w.expectEvents(agent, "")
	w.clock.Advance(time.Microsecond)
	for _, want := range []string{"trial.expiring expires_at=" + w.clock.Now().Add(3*session.Day).Format(time.RFC3339), ""} {
		ok(t, w.webhooks.RemindTrials(t.Context()))
		w.expectEvents(agent, want)
	}
	same(t, "told one with money of its own", w.receivedEvents(funded), "")
}

func TestWhatMoneyTells(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	low := "balance.low threshold=1"
	t.Run("a balance that falls below 1.00, once a day", func(t *testing.T) {
		for _, c := range []struct{ amount, want string }{
			{"-9", ""}, {"-0.000001", low}, {"0.000001", ""}, {"-0.000001", ""}, {"-0.5", ""}, {"9.500001", ""},
		} {
			_, err := w.wallet.Adjust(t.Context(), agent, dollars(c.amount), "test")
			ok(t, err)
			w.expectEvents(agent, c.want)
		}
		w.clock.Advance(session.Day)
		v := w.buyGB(agent, "24")
		w.expectEvents(agent, low+"; session.active status=active")
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.clock.Advance(14 * session.Day)
		w.forget()
		ok(t, w.passes.ExpireTrials(t.Context()))
	})
	t.Run("each threshold of a budget, once a day", func(t *testing.T) {
		agent := w.hooked()
		w.budget(agent, "4", "8", false)
		_, err := w.wallet.SetBudget(t.Context(), ledger.SetBudget{AgentID: agent, Thresholds: &[]int{50, 90, 100}})
		ok(t, err)
		buy := func(gb, want string) sessions.View {
			v := w.buyGB(agent, gb)
			if want != "" {
				want += "; "
			}
			w.expectEvents(agent, want+"session.active status=active")
			return v
		}
		buy("4.9", "")
		v := buy("0.1", "budget.threshold limit=daily threshold=50")
		_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.forget()
		buy("0.1", "")
		buy("5", "budget.threshold limit=daily threshold=90; budget.threshold limit=daily threshold=100; budget.threshold limit=total threshold=50")
		w.clock.Advance(session.Day)
		buy("5", "budget.threshold limit=daily threshold=50")
	})
}

// buyGB buys so much traffic at 0.40.
func (w *world) buyGB(agent, gb string) sessions.View {
	w.t.Helper()
	f := form(local)
	f.Bytes = gigabytes(gb)
	d, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	ok(w.t, err)
	return d.View
}

func TestARotatedSecretIsTold(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.hooked()
	_, _, err := w.accounts.RotateSecret(t.Context(), agent)
	ok(t, err)
	w.expectEvents(agent, "account.secret_rotated")
}

// An event is stored with its change or not at all, and so are its delivery and
// its job.
func TestEventsFollowTheirUnit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.hooked()
	v := w.buy(agent, local)
	before := w.dump()
	w.store.failUpdates(1)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	refused(t, err, errStore)
	same(t, "the database", w.dump(), before)
	_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	same(t, "told", w.receivedEvents(agent), "session.active status=active; session.terminated status=terminated status_reason=agent_request")
	same(t, "jobs", len(w.tries()), 2)
}

func TestWithoutAWebhookNothingIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.small(agent)
	w.useAll(v.ID, 96_000_000)
	_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	_, _, err = w.accounts.RotateSecret(t.Context(), agent)
	ok(t, err)
	_, err = w.accounts.Update(t.Context(), accounts.Update{AgentID: agent, Update: account.Update{Name: new("other")}})
	ok(t, err)
	for _, table := range []string{"outbox", "webhook_deliveries", "webhook_states", "webhook_marks"} {
		same(t, table, w.texts(`SELECT COUNT(*) FROM "` + table + `"`)[0], "0")
	}
	same(t, "jobs", len(w.tries()), 0)
}
