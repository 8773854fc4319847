package gateway

import "go.uber.org/fx"

// Module serves the proxy port for as long as the application runs. It needs a
// Config and Deps.
var Module = fx.Module("gateway",
	fx.Provide(New),
	fx.Invoke(func(lc fx.Lifecycle, g *Gateway) { lc.Append(fx.StartStopHook(g.Start, g.Stop)) }),
)
