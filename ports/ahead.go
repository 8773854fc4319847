package ports

import "context"

// Ahead names what a unit is going to read, as far as that is known before it runs. A store may read
// and lock the rows of several units together. A unit that reads other rows than it named is as
// correct, and slower.
type Ahead struct {
	// Agent is whose unit it is.
	Agent string
	// Money is whether it reads the agent and its wallet.
	Money bool
	// Health are the sessions whose health it reads, Sessions those that it reads as a whole.
	Health, Sessions []string
	// Path and Key are those of the Idempotency-Key that it looks for; Key is empty for none.
	Path, Key string
}

type aheadKey struct{}

// ReadAhead returns a context for Update of a unit that reads what a names.
func ReadAhead(ctx context.Context, a Ahead) context.Context {
	return context.WithValue(ctx, aheadKey{}, &a)
}

// AheadOf returns what ReadAhead named, nil if nothing.
func AheadOf(ctx context.Context) *Ahead {
	a, _ := ctx.Value(aheadKey{}).(*Ahead)
	return a
}
