package certificate

import "go.uber.org/fx"

// Module looks after the certificate for as long as the application runs. It needs a Keeper.
var Module = fx.Module("certificate",
	fx.Invoke(func(lc fx.Lifecycle, k *Keeper) { lc.Append(fx.StartStopHook(k.Start, k.Stop)) }),
)
