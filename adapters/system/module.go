package system

import (
	"go.uber.org/fx"

	"agentproxy/ports"
)

// Module provides the ids, the secrets and the tokens. It needs Roots, which
// wiring reads from AGENTPROXY_SECRET (ParseRoot) or from the file beside the
// database (LoadOrCreateSecret). *Secrets is provided beside the port, for the
// gateway's ProxyKey. The clock of the service is that of its database: storage
// provides it, and compares Clock with it.
var Module = fx.Module("system",
	fx.Provide(
		func() ports.IDs { return new(IDs) },
		fx.Annotate(ofRoots, fx.As(fx.Self()), fx.As(new(ports.Secrets))),
		fx.Annotate(NewTokens, fx.As(new(ports.Tokens))),
	),
)

func ofRoots(r Roots) (*Secrets, error) { return NewSecrets(r.Current, r.Previous...) }
