package ports

import "context"

// AgentKey is the key of the agent in a context, for one that finds it by itself.
type AgentKey struct{}

// WithAgent returns a context of what is done for an agent. Where calls of providers have to wait,
// those of different agents take turns, and an agent has no more than its share of a store's
// connections.
func WithAgent(ctx context.Context, agentID string) context.Context {
	return context.WithValue(ctx, AgentKey{}, agentID)
}

// AgentOf returns the agent for whom something is done; empty for the service itself.
func AgentOf(ctx context.Context) string {
	agentID, _ := ctx.Value(AgentKey{}).(string)
	return agentID
}
