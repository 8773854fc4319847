package overview_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/overview"
	"agentproxy/app/telemetry"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

var ctx = context.Background()

func report(w *apptest.World, agent, id, kind string, times int) {
	for range times {
		w.Report(agent, id, kind)
	}
}

func TestRisks(t *testing.T) {
	w := apptest.New(t)
	u := overview.New(w.Store, w.Clock)
	agent, other := w.RegisterFunded(50), w.RegisterFunded(50)
	w.Buy(other, apptest.Local)
	ended := w.Buy(agent, apptest.Local)
	fine, blocked := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	_, err := w.Sessions.Terminate(ctx, agent, ended.ID)
	apptest.OK(t, err)
	report(w, agent, blocked.ID, "block", 30)
	risk := w.Read(agent, blocked.ID).Verdict.RiskLevel
	if risk == health.Low {
		t.Fatal("30 blocks are no risk")
	}
	look, err := u.Summarize(ctx, agent, 20)
	counts := look.Risks
	if err != nil || len(counts) != 2 || counts[health.Low] != 1 || counts[risk] != 1 {
		t.Errorf("the risks are %v, %v", counts, err)
	}
	page := domain.Page{Number: 1, Size: 1}
	ids, err := u.Live(ctx, overview.Live{AgentID: agent, Risk: risk, Filter: ports.SessionFilter{Status: session.Active, Type: session.Dynamic}, Page: page})
	if err != nil || ids.Total != 1 || len(ids.Items) != 1 || ids.Items[0] != blocked.ID {
		t.Errorf("at risk are %v, %v", ids, err)
	}
	if ids, _ = u.Live(ctx, overview.Live{AgentID: agent, Risk: health.Low, Filter: ports.SessionFilter{}, Page: page}); ids.Total != 1 || ids.Items[0] != fine.ID {
		t.Errorf("without risk are %v", ids)
	}
	if ids, _ = u.Live(ctx, overview.Live{AgentID: agent, Risk: health.Low, Filter: ports.SessionFilter{Type: session.Static}, Page: page}); ids.Total != 0 {
		t.Errorf("static ones are %v", ids)
	}
	if ids, _ = u.Live(ctx, overview.Live{AgentID: agent, Risk: health.Low, Filter: ports.SessionFilter{Status: session.Creating}, Page: page}); ids.Total != 0 {
		t.Errorf("those being created are %v", ids)
	}
	if ids, _ = u.Live(ctx, overview.Live{AgentID: agent, Risk: health.Low, Filter: ports.SessionFilter{}, Page: domain.Page{Number: 2, Size: 1}}); ids.Total != 1 || len(ids.Items) != 0 {
		t.Errorf("the page after the last has %v", ids)
	}
	if _, err = u.Live(ctx, overview.Live{AgentID: agent, Risk: "none", Filter: ports.SessionFilter{}, Page: page}); apptest.InvalidFields(err) != "risk" {
		t.Errorf("an unknown risk: %v", err)
	}
}

func TestTheRiskOfASessionWithWorkersIsTheirsToo(t *testing.T) {
	w := apptest.New(t)
	u := overview.New(w.Store, w.Clock)
	agent := w.RegisterFunded(50)
	v := w.Buy(agent, apptest.Local)
	_, _, err := w.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: v.ID, Names: []string{"one"}})
	apptest.OK(t, err)
	for range 30 {
		_, err := w.Telemetry.Report(ctx, agent, telemetry.ReportedEvent{SessionID: v.ID, Worker: "one", Report: health.Report{Type: "block"}})
		apptest.OK(t, err)
	}
	risk := w.Read(agent, v.ID).Verdict.RiskLevel
	look, err := u.Summarize(ctx, agent, 20)
	if err != nil || risk == health.Low || look.Risks[risk] != 1 || len(look.Risks) != 1 || len(look.Causes) != 1 || look.Causes[0].Count != 30 {
		t.Errorf("the session's risk is %s, the overview has %v with %+v, %v", risk, look.Risks, look.Causes, err)
	}
	ids, err := u.Live(ctx, overview.Live{AgentID: agent, Risk: risk, Filter: ports.SessionFilter{}, Page: domain.Page{Number: 1, Size: 10}})
	if err != nil || ids.Total != 1 {
		t.Errorf("at risk are %v, %v", ids, err)
	}
}

func TestFailures(t *testing.T) {
	w := apptest.New(t)
	u := overview.New(w.Store, w.Clock)
	agent, other := w.RegisterFunded(50), w.RegisterFunded(50)
	first, second, foreign := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local), w.Buy(other, apptest.Local)
	report(w, other, foreign.ID, "block", 1)
	report(w, agent, first.ID, "captcha", 1)
	w.Clock.Advance(time.Second)
	report(w, agent, second.ID, "timeout", 1)
	w.Clock.Advance(time.Second)
	report(w, agent, first.ID, "success", 120)
	w.Clock.Advance(time.Second)
	report(w, agent, first.ID, "block", 1)
	failures := func(agent string, limit int) []overview.Cause {
		t.Helper()
		look, err := u.Summarize(ctx, agent, limit)
		apptest.OK(t, err)
		return look.Causes
	}
	list := failures(agent, 20)
	var got string
	for _, f := range list {
		got += f.Type + " "
	}
	if got != "block timeout captcha " || list[0].SessionID != first.ID || list[1].SessionID != second.ID {
		t.Errorf("the failures are %s: %+v", got, list)
	}
	if list = failures(agent, 2); len(list) != 2 || list[1].Type != "timeout" {
		t.Errorf("the last two are %+v", list)
	}
	if list = failures(w.Register(), 2); len(list) != 0 {
		t.Errorf("a new account has %+v", list)
	}
	w.Clock.Advance(time.Second)
	report(w, agent, second.ID, "block", 2)
	if list = failures(agent, 1); list[0].Count != 3 || list[0].Sessions != 2 || list[0].SessionID != second.ID || !list[0].At.Equal(w.Clock.Now()) {
		t.Errorf("three of one cause are %+v", list)
	}
	_, err := w.Sessions.Terminate(ctx, agent, second.ID)
	apptest.OK(t, err)
	if list = failures(agent, 2); len(list) != 2 || list[0].SessionID != second.ID || list[1].Type != "timeout" {
		t.Errorf("with one that has ended: %+v", list)
	}
}

func TestHoursOfASession(t *testing.T) {
	w := apptest.New(t)
	u := overview.New(w.Store, w.Clock)
	agent := w.RegisterFunded(50)
	one, two := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	w.UseBytes(one.ID, "one", 1_000_000)
	w.UseBytes(two.ID, "two", 5)
	w.Clock.Advance(time.Hour)
	w.UseBytes(one.ID, "later", 30)
	hours, err := u.Hours(ctx, agent, one.ID, 24)
	apptest.OK(t, err)
	last := hours[23]
	if len(hours) != 24 || !last.Start.Equal(w.Clock.Now().Truncate(time.Hour)) || last.Up+last.Down != 30 ||
		hours[22].Up+hours[22].Down != 1_000_000 || hours[21].Up+hours[21].Down != 0 || !hours[0].Start.Equal(last.Start.Add(-23*time.Hour)) {
		t.Errorf("the hours are %+v", hours[20:])
	}
	var cost domain.Money
	for _, h := range hours {
		cost += h.Charged - h.Refunded
	}
	if want := w.Read(agent, one.ID).Cost.Charged; want == 0 || cost != want {
		t.Errorf("the hours cost %s, the session %s", cost, want)
	}
	_, err = u.Hours(ctx, w.Register(), one.ID, 24)
	apptest.ErrorIs(t, err, session.ErrNotFound)
}
