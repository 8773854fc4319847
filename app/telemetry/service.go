package telemetry

import (
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Service takes what agents report of their requests, and returns the health of
// the session.
type Service struct {
	store    ports.Unit[repos]
	clock    ports.Clock
	ids      ports.IDs
	observer *Observer
	queue    ports.TelemetryQueue // nil: reports are stored at once
	added    addedEvents          // of accounts on trial

	// FoldWait is how long the answer to a report waits until the queue's is folded. After that it is given
	// without: the queue has the report, and it is folded later.
	FoldWait time.Duration
}

// New returns the use cases. Reports are matched with what the gateway
// of this process observed.
func New(store ports.Store, clock ports.Clock, ids ports.IDs, observer *Observer) *Service {
	return &Service{store: narrow(store), clock: clock, ids: ids, observer: observer, FoldWait: time.Second}
}

// WithQueue has reports go through a queue, and returns the service. Fold is what folds it.
func (s *Service) WithQueue(queue ports.TelemetryQueue) *Service {
	s.queue = queue
	return s
}

// ReportedEvent is one event as an agent sent it.
type ReportedEvent struct {
	SessionID string
	Worker    string // empty: the session's own exit
	health.Report
}

// reportedOn is a session or worker: its health, and its new events.
type reportedOn struct {
	*ports.HealthRead
	events []eventlog.Event
	id     int64          // of the worker; 0: the session itself
	failed worker.Failure // the last one of a worker, if it is new
}

// Reported answers one event.
type Reported struct {
	EventID string
	Verdict health.Verdict
}

// EventResult answers one event of a batch. Err is nil when it was accepted.
type EventResult struct {
	SessionID string
	Err       *domain.Error
}
