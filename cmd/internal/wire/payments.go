package wire

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/operator"
	"agentproxy/app/payments"
	"agentproxy/app/playmoney"
)

// chainModule returns the chain that payments come from.
func chainModule(s configfile.PaymentSettings) fx.Option {
	if s.AccountKey != "" {
		return fx.Options(chain.TronModule,
			fx.Provide(
				func(log *slog.Logger) chain.TronConfig {
					return chain.TronConfig{Network: s.Network, BaseURL: s.BaseURL, JSONRPC: s.JSONRPC, APIKey: string(s.APIKey),
						Contract: s.Contract, WitnessURL: s.WitnessURL, WitnessAbove: s.WitnessAbove, Logger: log}
				},
				func() (*chain.Account, error) { return chain.NewAccount(s.AccountKey) },
				func() *chain.Devchain { return nil },
			))
	}
	return fx.Options(chain.DevModule, fx.Provide(func(secrets *system.Secrets) chain.DevchainConfig {
		return chain.DevchainConfig{BlockEvery: s.DevchainBlock, Seed: secrets.DevchainSeed()}
	}))
}

// paymentsConfig returns the settings of recharges. On PostgreSQL no file of one replica has what the others gave out:
// each replica notices that commits of its own were lost.
func paymentsConfig(s configfile.Settings, st *storage.Store, log *slog.Logger) payments.Config {
	c := payments.Config{Off: s.Payments.Off, Log: log, Lost: st.LossyPromotions}
	if s.DatabasePath != "" {
		c.Mark = system.NewIndexMark(IndexFile(s.DatabasePath))
	}
	return c
}

// checkPlay refuses real payments while wallets have money that cost nothing.
func checkPlay(play *playmoney.Service) error { return play.Check(context.Background()) }

// checkProviders refuses a configuration without a provider whose sessions live.
func checkProviders(u *operator.Unconfigured) error { return u.Check(context.Background()) }

// paymentNetwork returns the network that payments come from.
func paymentNetwork(s configfile.Settings) playmoney.Network {
	if s.Payments.Off || s.Payments.AccountKey == "" {
		return ""
	}
	return playmoney.Network(s.Payments.Network)
}

// holdClock holds a clock that is far ahead, where a chain can confirm it. The development chain goes by the clock
// itself.
func holdClock(st *storage.Store, s configfile.Settings) error {
	return st.HoldClock(context.Background(), string(paymentNetwork(s)))
}

// resumeIndexes compares the database with the indexes that were given out before the first order. What fails is tried
// again with it: the service starts on a full disk too.
func resumeIndexes(lc fx.Lifecycle, orders *payments.Orders, log *slog.Logger) {
	lc.Append(fx.StartHook(func(ctx context.Context) {
		if err := orders.Indexes.Resume(ctx); err != nil {
			log.Error("the indexes of payment addresses could not be compared; no new address is given out", "err", err)
		}
	}))
}

// startDevchain sets the pace of the development chain before the first transfer.
func startDevchain(lc fx.Lifecycle, dev *chain.Devchain, s configfile.Settings) {
	if dev != nil && !s.Payments.Off {
		lc.Append(fx.StartHook(dev.Start))
	}
}

// Periods of the tasks. A transfer on TRON is final after about a minute, and
// TronGrid's free plan has 100,000 calls a day. An audit reads some balances, so
// that its calls do not grow with the number of addresses.
const (
	watchTron   = 10 * time.Second
	watchIdle   = 30 * time.Second // while no order is open
	auditEvery  = 10 * time.Minute
	auditAtOnce = 100
)

func watchPayments(s configfile.PaymentSettings, p *payments.Watcher, leads func() bool) task {
	every := watchTron
	if s.AccountKey != "" {
		p.SetIdle(watchIdle)
	} else {
		every = min(max(s.DevchainBlock/2, 10*time.Millisecond), time.Second)
	}
	return task{name: "watch payments", every: every, run: p.Watch, leads: leads}
}
