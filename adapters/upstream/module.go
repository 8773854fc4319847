package upstream

import (
	"go.uber.org/fx"

	"agentproxy/ports"
)

// EmbeddedModule adds the embedded provider to the group "providers". It needs
// a Config and a *slog.Logger.
var EmbeddedModule = fx.Module("upstream-embedded",
	fx.Provide(fx.Annotate(NewEmbedded, fx.As(new(ports.Provider)), fx.ResultTags(`group:"providers"`))),
)
