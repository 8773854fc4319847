package seller

import "context"

type faultKey struct{}

// WithFault tells a handler which fault was drawn: OutOfStock and NoFunds are
// answered in the seller's own words.
func WithFault(ctx context.Context, f Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

// FaultOf is what WithFault told.
func FaultOf(ctx context.Context) Fault {
	f, _ := ctx.Value(faultKey{}).(Fault)
	return f
}
