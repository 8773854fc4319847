package ports

import (
	"context"
	"time"

	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// Health keeps the health state of sessions.
type Health interface {
	// Get returns the states of those of the ids that the agent owns, with
	// their type and status; the zero state where nothing was reported yet. An
	// empty agent id asks for the service itself.
	Get(ctx context.Context, agentID string, ids []string) (map[string]*HealthRead, error)
	// Summaries lists the agent's creating and active sessions, and whichever are among its last
	// ones that were created, newest first.
	Summaries(ctx context.Context, agentID string, last int) ([]SessionSummary, error)
	// LiveSummaries lists the agent's creating and active sessions that a filter lets through,
	// newest first.
	LiveSummaries(ctx context.Context, agentID string, f SessionFilter) ([]SessionSummary, error)
	Put(ctx context.Context, id string, s health.State) error
}

// SessionSummary is what a list of many sessions needs of one.
type SessionSummary struct {
	ID      string
	Type    session.Type
	Status  session.Status
	UsedAt  time.Time // of its last traffic; zero: none
	Expires time.Time // of a static session; zero: never
	Health  health.Summary
	Workers bool // it has workers, whose health counts too
}

// HealthRead is the health state of a session and what a verdict needs.
type HealthRead struct {
	State   health.State
	AgentID string
	Type    session.Type
	Status  session.Status
}
