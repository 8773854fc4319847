package ports

import (
	"context"

	"agentproxy/domain/fair"
)

type partyKey struct{}

// WithParty returns a context in which providers are called for a party. Where calls have to wait,
// parties take turns.
func WithParty(ctx context.Context, who fair.Party) context.Context {
	return context.WithValue(ctx, partyKey{}, who)
}

// PartyOf returns who a provider is called for; the zero Party for the service itself.
func PartyOf(ctx context.Context) fair.Party {
	who, _ := ctx.Value(partyKey{}).(fair.Party)
	return who
}
