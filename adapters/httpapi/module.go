package httpapi

import (
	"go.uber.org/fx"
)

// Module serves the public API for as long as the application runs. It needs a
// Config.
var Module = fx.Module("httpapi",
	fx.Provide(New),
	fx.Invoke(func(lc fx.Lifecycle, s *Server) { lc.Append(fx.StartStopHook(s.Start, s.Stop)) }),
)
