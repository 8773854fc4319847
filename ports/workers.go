package ports

import (
	"context"
	"time"

	"agentproxy/domain/health"
	"agentproxy/domain/worker"
)

// Workers keeps the workers of sessions. A unit that changes those of a session locks the session
// first, as Sessions.Lock does.
type Workers interface {
	// Of lists the workers of a session by name, byte by byte.
	Of(ctx context.Context, sessionID string) ([]worker.Worker, error)
	// Get returns a worker of a session, or worker.ErrNotFound.
	Get(ctx context.Context, sessionID, name string) (worker.Worker, error)
	// Insert stores a worker and returns its ID, which no other worker had before. It is
	// session.ErrNotFound for an unknown session.
	Insert(ctx context.Context, w worker.Worker) (int64, error)
	// Put writes everything but ID, session, name, creation, usage and failure.
	Put(ctx context.Context, w worker.Worker) error
	// Changed records a change of a session, so that every replica reads its workers again.
	Changed(ctx context.Context, sessionID string) error
	// Rotated counts a rotation of a worker by call; the count outlasts the worker.
	Rotated(ctx context.Context, sessionID string) error
	// Delete removes a worker with its health. Removing one that is not there is no error.
	Delete(ctx context.Context, id int64) error
	// Count adds to the usage of a worker of a session. One that was removed counts nothing.
	Count(ctx context.Context, id int64, more worker.Usage, at time.Time) error
	// Bytes returns what passed through workers; removed ones are left out.
	Bytes(ctx context.Context, ids []int64) (map[int64]int64, error)
	// Health reads the states of workers of a session by name, all of them if no name is
	// given; the zero state where nothing was observed yet.
	Health(ctx context.Context, sessionID string, names ...string) ([]WorkerHealth, error)
	// HealthOf reads the states of all workers of sessions.
	HealthOf(ctx context.Context, sessionIDs []string) (map[string][]WorkerHealth, error)
	// PutHealth stores a state, and the failure if it has a time.
	PutHealth(ctx context.Context, id int64, s health.State, failed worker.Failure) error
}

// WorkerHealth is the health state of a worker.
type WorkerHealth struct {
	ID    int64
	Name  string
	State health.State
}
