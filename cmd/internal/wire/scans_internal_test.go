package wire

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"agentproxy/adapters/gateway"
	"agentproxy/app/accounts"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// An account on trial that scans is disabled once, with its sessions, and the operator reads why. One with own money goes on.
func TestAccountsOnTrialThatScanAreDisabled(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	st := operator.Audited(w.Store, w.IDs)
	trail := operator.NewTrail(st, w.Clock, w.IDs)
	var log bytes.Buffer
	base := w.Base()
	base.Store = st
	s := newScans(accounts.New(accounts.Config{FundedFrom: 1}, base, nil, w.Transitions, w.Hub), trail,
		slog.New(slog.NewTextHandler(&log, nil)))
	trial, funded := w.Register(), w.RegisterFunded(5)
	v, other := w.Buy(trial, apptest.Local), w.Buy(funded, apptest.Local)
	for _, agent := range []string{trial, funded, trial} { // a route may be outdated for a minute
		apptest.OK(t, s.disable(t.Context(), gateway.Scan{Agent: agent, Trial: true, Targets: 312, Failed: 300}))
	}
	info, err := w.Accounts.Info(t.Context(), trial)
	apptest.OK(t, err)
	apptest.Equal(t, "the account on trial", info.Agent.Status, account.Disabled)
	apptest.Equal(t, "its reason", info.Agent.DisabledFor, "scan: of 312 targets in 10 minutes 300 refused or failed")
	apptest.Equal(t, "its session", w.Read(trial, v.ID).Reason, session.AccountDisabled)
	apptest.Equal(t, "the session of the other", w.Read(funded, other.ID).Status, session.Active)
	list, err := trail.List(t.Context(), audit.Filter{}, domain.Page{Number: 1, Size: 100})
	apptest.OK(t, err)
	if len(list.Items) != 1 || list.Items[0].Subject != trial || list.Items[0].By != "agentproxy" || list.Items[0].Via != audit.Service ||
		list.Items[0].Reason != info.Agent.DisabledFor {
		t.Errorf("the operator's actions are %+v", list.Items)
	}
	if n := strings.Count(log.String(), "was disabled for a scan"); n != 1 || !strings.Contains(log.String(), trial) {
		t.Errorf("the log has it %d times:\n%s", n, &log)
	}
	apptest.ErrorIs(t, s.disable(t.Context(), gateway.Scan{Agent: "agt_unknown", Trial: true}), account.ErrNotFound)
}

// Reports of the gateway never wait; those of accounts with own money are for the log alone.
func TestReportsOfScansDoNotWait(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newScans(nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	s.report(gateway.Scan{Agent: "agt_funded"})
	for range waitingScans + 1 {
		s.report(gateway.Scan{Agent: "agt_trial", Trial: true})
	}
	if len(s.waiting) != waitingScans || (<-s.waiting).Agent != "agt_trial" || !strings.Contains(log.String(), "agt_trial") {
		t.Errorf("%d wait; the log has %s", len(s.waiting), &log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&scans{waiting: make(chan gateway.Scan)}).run(ctx)
	if d := reportScans(gateway.Deps{}, s); d.Scanned == nil {
		t.Error("the gateway reports nothing")
	}
}
