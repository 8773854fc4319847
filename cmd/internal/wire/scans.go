package wire

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/gateway"
	"agentproxy/adapters/gateway/quota"
	"agentproxy/app/accounts"
	"agentproxy/app/operator"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
)

// waitingScans bounds the reports that wait for the database. What does not fit is in the log, and
// comes again after quota.ScanWindow.
const waitingScans = 64

// disableWithin bounds the disabling of one account.
const disableWithin = 30 * time.Second

// scans disables accounts on trial that the gateway reports as scanning. Accounts with own money are
// left to the operator, who reads of them in the log: they cannot be had by the hundred.
type scans struct {
	accounts *accounts.Service
	trail    *operator.Trail
	log      *slog.Logger
	waiting  chan gateway.Scan
}

func newScans(accounts *accounts.Service, trail *operator.Trail, log *slog.Logger) *scans {
	return &scans{accounts, trail, log, make(chan gateway.Scan, waitingScans)}
}

// report takes a report of the gateway. It does not block.
func (s *scans) report(x gateway.Scan) {
	if !x.Trial {
		return
	}
	select {
	case s.waiting <- x:
	default:
		s.log.Error("an account that scans is not disabled: too many wait", "agent_id", x.Agent)
	}
}

// disable disables an account, unless it has got own money meanwhile, and keeps it among the actions
// of the operator.
func (s *scans) disable(ctx context.Context, x gateway.Scan) error {
	ctx, cancel := context.WithTimeout(ctx, disableWithin)
	defer cancel()
	info, err := s.accounts.Info(ctx, x.Agent)
	if err != nil || info.Tier != account.TrialTier || info.Agent.Status == account.Disabled {
		return err
	}
	reason := fmt.Sprintf("scan: of %d targets in %d minutes %d refused or failed", x.Targets,
		int(quota.ScanWindow.Minutes()), x.Failed)
	a := audit.Action{By: "agentproxy", Via: audit.Service, Name: "agent disable", Subject: x.Agent, Reason: reason}
	err = s.trail.Do(ctx, a, func(ctx context.Context) error { return s.accounts.Disable(ctx, x.Agent, reason) })
	if err == nil {
		s.log.Warn("an account on trial was disabled for a scan; agentproxy agent enable takes that back", "agent_id",
			x.Agent, "reason", reason)
	}
	return err
}

// run disables what is reported until ctx ends.
func (s *scans) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-s.waiting:
			if err := s.disable(ctx, x); err != nil {
				s.log.Error("an account that scans is not disabled", "agent_id", x.Agent, "err", err)
			}
		}
	}
}

// reportScans lets the gateway report scans.
func reportScans(d gateway.Deps, s *scans) gateway.Deps {
	d.Scanned = s.report
	return d
}

// disableScanners disables accounts that scan for as long as the application runs.
func disableScanners(lc fx.Lifecycle, s *scans) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() { wg.Go(func() { s.run(ctx) }) }, func() { cancel(); wg.Wait() }))
}
