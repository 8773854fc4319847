package wire

import (
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/system"
	"agentproxy/app/payments"
)

// chainModule returns the chain that payments come from.
func chainModule(s configfile.PaymentSettings) fx.Option {
	if s.AccountKey != "" {
		return fx.Options(chain.TronModule,
			fx.Supply(chain.TronConfig{Network: s.Network, BaseURL: s.BaseURL, APIKey: string(s.APIKey), Contract: s.Contract}),
			fx.Provide(
				func() (*chain.Account, error) { return chain.NewAccount(s.AccountKey) },
				func() *chain.Devchain { return nil },
			))
	}
	return fx.Options(chain.DevModule, fx.Provide(func(secrets *system.Secrets) chain.DevchainConfig {
		return chain.DevchainConfig{BlockEvery: s.DevchainBlock, Seed: secrets.DevchainSeed()}
	}))
}

// startDevchain sets the pace of the development chain before the first transfer.
func startDevchain(lc fx.Lifecycle, dev *chain.Devchain) {
	if dev != nil {
		lc.Append(fx.StartHook(dev.Start))
	}
}

// Periods of the tasks. A block of TRON takes 3 seconds. An audit reads a few
// addresses per minute, so that its calls do not grow with their number.
const (
	watchTron   = 5 * time.Second
	auditEvery  = time.Minute
	auditAtOnce = 5
)

func watchPayments(s configfile.PaymentSettings, p *payments.Watcher, leads func() bool) task {
	every := watchTron
	if s.AccountKey == "" {
		every = min(max(s.DevchainBlock/4, 10*time.Millisecond), time.Second)
	}
	return task{name: "watch payments", every: every, run: p.Watch, only: leads}
}
