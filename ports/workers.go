package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/worker"
)

// Workers keeps the workers of sessions. A unit that changes those of a session locks the session
// first, as Sessions.Lock does, and has read a worker before it writes that one: those of a session
// that is archived are then out of the archive again.
type Workers interface {
	// Of lists the workers of a session by name, byte by byte.
	Of(ctx context.Context, sessionID string) ([]worker.Worker, error)
	// Page returns a page of the workers of a session in the order of worker.CompareNames, with the number of all;
	// of one status, if it is not empty.
	Page(ctx context.Context, sessionID string, of worker.Status, page domain.Page) (domain.List[worker.Worker], error)
	// Get returns a worker of a session, or worker.ErrNotFound.
	Get(ctx context.Context, sessionID, name string) (worker.Worker, error)
	// Insert stores a worker and returns its ID, which no other worker had before. It is
	// session.ErrNotFound for an unknown session, and for one that is archived.
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
	// Bytes returns what passed through workers; removed and archived ones are left out.
	Bytes(ctx context.Context, ids []int64) (map[int64]int64, error)
	// Health reads the states of workers of a session by name, all of them if no name is
	// given; the zero state where nothing was observed yet.
	Health(ctx context.Context, sessionID string, names ...string) ([]WorkerHealth, error)
	// HealthOf reads the states of all workers of sessions.
	HealthOf(ctx context.Context, sessionIDs []string) (map[string][]WorkerHealth, error)
	// PutHealth stores a state, and the failure if it has a time.
	PutHealth(ctx context.Context, id int64, s health.State, failed worker.Failure) error
	// ArchiveDue looks at up to limit sessions with workers, those after a place in the order of
	// their creation, and lists the ones that ended at or before a time, hold no money and no
	// traffic of leases, and wait for no settlement. It returns the place of the last one, 0 behind
	// the end. None is listed before the database lets programs archive.
	ArchiveDue(ctx context.Context, now, endedBy time.Time, after int64, limit int) (due []string, last int64, err error)
	// Archive keeps the workers of a session in less space, with everything that is read of them.
	// Programs that do not read archives are refused from then on. Without workers it does nothing.
	Archive(ctx context.Context, sessionID string, now time.Time) error
}

// WorkerHealth is the health state of a worker.
type WorkerHealth struct {
	ID    int64
	Name  string
	State health.State
}
