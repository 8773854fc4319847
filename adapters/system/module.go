package system

import (
	"go.uber.org/fx"

	"agentproxy/ports"
)

// Module provides the clock, the ids, the secrets and the tokens. It needs a
// Roots, which wiring reads from AGENTPROXY_SECRET (ParseRoot) or from the file
// beside the database (LoadOrCreateSecret). *Secrets is provided beside the
// port, for the gateway's ProxyKey.
var Module = fx.Module("system",
	fx.Provide(
		func() ports.Clock { return Clock{} },
		func() ports.IDs { return new(IDs) },
		fx.Annotate(func(r Roots) (*Secrets, error) { return NewSecrets(r.Current, r.Previous...) }, fx.As(fx.Self()), fx.As(new(ports.Secrets))),
		fx.Annotate(NewTokens, fx.As(new(ports.Tokens))),
	),
)
