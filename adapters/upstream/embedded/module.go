package embedded

import "go.uber.org/fx"

// Module provides a *Provider. It needs a Config and a *slog.Logger.
var Module = fx.Module("embedded",
	fx.Provide(New),
)
