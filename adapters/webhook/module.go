package webhook

import (
	"go.uber.org/fx"

	"agentproxy/ports"
)

// Module provides the sender of webhooks and closes its connections when the
// application stops. It needs a Config.
var Module = fx.Module("webhook",
	fx.Provide(func(lc fx.Lifecycle, cfg Config) ports.Sender {
		s := New(cfg)
		lc.Append(fx.StopHook(s.Close))
		return s
	}),
)
