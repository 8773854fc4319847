package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

type behalfKey struct{}

// OnBehalf returns a context in which providers are called for an agent. Where calls have to wait,
// those of different parties take turns.
func OnBehalf(ctx context.Context, who procurement.Party) context.Context {
	return context.WithValue(ctx, behalfKey{}, who)
}

// BehalfOf returns who a provider is called for; the zero Party for the service itself.
func BehalfOf(ctx context.Context) procurement.Party {
	who, _ := ctx.Value(behalfKey{}).(procurement.Party)
	return who
}
