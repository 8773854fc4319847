package wire

import (
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/system"
	"agentproxy/app"
)

// chainModule is the chain that the settings name.
func chainModule(s configfile.PaymentSettings) fx.Option {
	if s.Account != nil {
		return fx.Options(chain.TronModule, fx.Supply(s.Account, s.Tron), fx.Provide(func() *chain.Devchain { return nil }))
	}
	return fx.Options(chain.DevModule, fx.Provide(func(secrets *system.Secrets) chain.DevchainConfig {
		return chain.DevchainConfig{BlockEvery: s.DevchainBlock, Seed: secrets.DevchainSeed()}
	}))
}

// startDevchain sets the pace of the development chain before anybody sends.
func startDevchain(lc fx.Lifecycle, dev *chain.Devchain) {
	if dev != nil {
		lc.Append(fx.StartHook(dev.Start))
	}
}

// The turns of the watcher. A block of TRON takes 3 seconds; an audit reads a
// few addresses a minute, so that all of them need no more calls than few.
const (
	watchTron   = 5 * time.Second
	auditEvery  = time.Minute
	auditAtOnce = 5
)

func watchPayments(s configfile.PaymentSettings, p *app.Payments, leads func() bool) pass {
	every := watchTron
	if s.Account == nil {
		every = min(max(s.DevchainBlock/4, 10*time.Millisecond), time.Second)
	}
	return pass{name: "watch payments", every: every, run: p.Watch, only: leads}
}
