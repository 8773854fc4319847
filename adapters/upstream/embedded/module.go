package upstream

import "go.uber.org/fx"

// EmbeddedModule provides the embedded provider. It needs a Config and a
// *slog.Logger.
var EmbeddedModule = fx.Module("upstream-embedded",
	fx.Provide(NewEmbedded),
)
