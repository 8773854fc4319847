// Package telemetry takes what agents and the gateway report of requests, and
// returns the health of sessions.
package telemetry

import (
	"context"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// MaxBatch is how many events one call may report.
const MaxBatch = 1000

// Report takes one event. While the session is creating it is accepted; on a
// session that ended it is session.ErrOver.
func (s *Service) Report(ctx context.Context, agentID string, e ReportedEvent) (Reported, error) {
	if issues := e.Issues(s.clock.Now()); issues != nil {
		return Reported{}, domain.InvalidFields(issues...)
	}
	in, err := s.acceptEvents(ctx, agentID, []ReportedEvent{e})
	if err != nil {
		return Reported{}, err
	}
	if refusal := in.results[0].Err; refusal != nil {
		return Reported{}, refusal
	}
	verdict, err := s.answer(ctx, in)
	if err != nil {
		return Reported{}, err
	}
	return Reported{EventID: in.events[0].ID, Verdict: verdict}, nil
}

// Batch takes 1 to MaxBatch events. A malformed one refuses the whole call; one
// for a session that is unknown, another agent's or over is rejected alone.
func (s *Service) Batch(ctx context.Context, agentID string, events []ReportedEvent) ([]EventResult, error) {
	if len(events) < 1 || len(events) > MaxBatch {
		return nil, domain.InvalidField("events", "must have 1 to %d events", MaxBatch)
	}
	now := s.clock.Now()
	var issues []domain.FieldIssue
	for i, e := range events {
		if e.SessionID == "" {
			issues = append(issues, domain.FieldIssue{Field: fmt.Sprintf("events[%d].session_id", i), Issue: "is required"})
		}
		for _, issue := range e.Issues(now) {
			issue.Field = fmt.Sprintf("events[%d].%s", i, issue.Field)
			issues = append(issues, issue)
		}
		if len(issues) > maxIssues {
			break
		}
	}
	if issues != nil {
		return nil, domain.InvalidFields(issues...)
	}
	in, err := s.acceptEvents(ctx, agentID, events)
	return in.results, err
}

// maxIssues bounds how many faults one answer lists.
const maxIssues = 50

// HealthView is the health of a session at one moment.
type HealthView struct {
	Verdict health.Verdict
	State   health.State
	At      time.Time
	Workers health.WorkerCount // of a dynamic session
}

// Health reads the health of a session, whatever its status.
func (s *Service) Health(ctx context.Context, agentID, id string) (HealthView, error) {
	var r *ports.HealthRead
	var workers map[string][]ports.WorkerHealth
	reads := ports.ReadSet{Agent: agentID, Health: []string{id}}
	err := s.store.View(ctx, reads, func(ctx context.Context, tx repos) error {
		reads, err := tx.Health().Get(ctx, agentID, []string{id})
		if err != nil {
			return err
		}
		var ok bool
		if r, ok = reads[id]; !ok {
			return session.ErrNotFound
		}
		workers, err = tx.Workers().HealthOf(ctx, []string{id})
		return err
	})
	if err != nil {
		return HealthView{}, err
	}
	now := s.clock.Now()
	v := HealthView{State: r.State, At: now}
	v.Verdict, v.Workers = r.State.VerdictWith(now, r.Type == session.Static, StatesOf(workers[id]))
	return v, nil
}

// StatesOf returns the states of workers.
func StatesOf(workers []ports.WorkerHealth) []*health.State {
	states := make([]*health.State, len(workers))
	for i := range workers {
		states[i] = &workers[i].State
	}
	return states
}
