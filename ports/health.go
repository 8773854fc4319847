package ports

import (
	"context"

	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// Health keeps the health state of sessions.
type Health interface {
	// Get returns the states of those of the ids that the agent owns, with
	// their type and status; the zero state where nothing was reported yet. An
	// empty agent id asks for the service itself.
	Get(ctx context.Context, agentID string, ids []string) (map[string]HealthRead, error)
	// Live returns the states of the agent's creating and active sessions, newest first.
	Live(ctx context.Context, agentID string) ([]LiveHealth, error)
	Put(ctx context.Context, id string, s health.State) error
}

// LiveHealth is the health state of a session with its id.
type LiveHealth struct {
	ID string
	HealthRead
}

// HealthRead is the health state of a session and what a verdict needs.
type HealthRead struct {
	State   health.State
	AgentID string
	Type    session.Type
	Status  session.Status
}
