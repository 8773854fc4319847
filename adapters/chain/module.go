// Package chain reads the USDT transfers of a chain, TRON or the one for
// development, and derives the addresses that they go to.
package chain

import (
	"go.uber.org/fx"

	"agentproxy/ports"
)

// DevModule provides the development chain and addresses on it. It needs a
// DevchainConfig. *Devchain is provided beside the port, for Send.
var DevModule = fx.Module("chain-dev",
	fx.Provide(
		fx.Annotate(NewDevchain, fx.As(fx.Self()), fx.As(new(ports.Chain))),
		func(config DevchainConfig) (ports.Deriver, error) { return DevAccount(config.Seed) },
	),
)

// TronModule provides TRON. It needs a TronConfig and the operator's *Account.
var TronModule = fx.Module("chain-tron",
	fx.Provide(
		fx.Annotate(NewTron, fx.As(new(ports.Chain))),
		func(account *Account) ports.Deriver { return account },
	),
)
