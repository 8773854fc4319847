package seller

import "context"

type faultKey struct{}

// WithFault returns a context with the fault of a request. Handlers answer OutOfStock and
// NoFunds with the seller's own message.
func WithFault(ctx context.Context, f Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

// FaultOf returns the fault that WithFault stored.
func FaultOf(ctx context.Context) Fault {
	f, _ := ctx.Value(faultKey{}).(Fault)
	return f
}
