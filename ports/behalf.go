package ports

import "context"

type behalfKey struct{}

// OnBehalf returns a context in which providers are called for an agent. Where calls have to wait,
// those of different agents take turns.
func OnBehalf(ctx context.Context, agentID string) context.Context {
	return context.WithValue(ctx, behalfKey{}, agentID)
}

// BehalfOf returns the agent that a provider is called for; empty for the service itself.
func BehalfOf(ctx context.Context) string {
	agentID, _ := ctx.Value(behalfKey{}).(string)
	return agentID
}
