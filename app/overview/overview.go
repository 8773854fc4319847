// Package overview holds what a person looks at first: which sessions are at risk, what failed, and how
// long the money lasts.
package overview

import (
	"context"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Service reads across the sessions of an agent.
type Service struct {
	store ports.Unit[repos]
	clock ports.Clock
}

// New returns the use cases.
func New(store ports.Store, clock ports.Clock) *Service { return &Service{narrow(store), clock} }

// Risks counts the live sessions of an agent by risk.
func (u *Service) Risks(ctx context.Context, agentID string) (map[health.Risk]int, error) {
	counts := map[health.Risk]int{}
	list, err := u.live(ctx, agentID)
	now := u.clock.Now()
	for _, l := range list {
		counts[l.State.Verdict(now, l.Type == session.Static).RiskLevel]++
	}
	return counts, err
}

// AtRisk lists a page of the ids of the live sessions of a risk, newest first. An empty status or type is any.
func (u *Service) AtRisk(ctx context.Context, agentID string, of health.Risk, status session.Status, typ session.Type,
	page domain.Page) (ids domain.List[string], err error) {
	if !slices.Contains([]health.Risk{health.Low, health.Medium, health.High, health.Critical}, of) {
		return ids, domain.InvalidField("risk", "must be low, medium, high or critical")
	}
	list, err := u.live(ctx, agentID)
	now := u.clock.Now()
	ids.Page = page
	for _, l := range list {
		if status != "" && l.Status != status || typ != "" && l.Type != typ ||
			l.State.Verdict(now, l.Type == session.Static).RiskLevel != of {
			continue
		}
		if ids.Total >= page.Offset() && len(ids.Items) < page.Size {
			ids.Items = append(ids.Items, l.ID)
		}
		ids.Total++
	}
	return ids, err
}

func (u *Service) live(ctx context.Context, agentID string) (list []ports.LiveHealth, err error) {
	err = u.store.Read(ctx, func(ctx context.Context, tx repos) error {
		list, err = tx.Health().Live(ctx, agentID)
		return err
	})
	return list, err
}

// Failure is an event of a session that did not work.
type Failure struct {
	SessionID string
	eventlog.Event
}

// The bounds of Failures: it reads the sessions that were used last, and of each the newest events.
const (
	recentSessions = 20
	recentEvents   = 300
)

// Failures lists the newest failures of the sessions that were used last, newest first.
func (u *Service) Failures(ctx context.Context, agentID string, limit int) ([]Failure, error) {
	var found []Failure
	err := u.store.View(ctx, func(ctx context.Context, tx repos) error {
		ids, err := tx.Events().Recent(ctx, agentID, recentSessions)
		if err != nil {
			return err
		}
		found = nil
		for _, id := range ids {
			of, err := failuresOf(ctx, tx, id, limit)
			if err != nil {
				return err
			}
			found = append(found, of...)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b Failure) int { return b.At.Compare(a.At) })
	return found[:min(len(found), limit)], err
}

func failuresOf(ctx context.Context, tx repos, id string, limit int) (found []Failure, err error) {
	for number := 1; number <= recentEvents/domain.MaxPageSize; number++ {
		list, err := tx.Events().Page(ctx, id, domain.Page{Number: number, Size: domain.MaxPageSize})
		if err != nil {
			return nil, err
		}
		for _, e := range list.Items {
			if e.IsFailure() {
				found = append(found, Failure{id, e})
			}
		}
		if len(found) >= limit || number >= list.TotalPages() {
			break
		}
	}
	return found, nil
}

// Hours sums the traffic and money of one session by hour, oldest first, hours without any included. The
// last hour is that of now.
func (u *Service) Hours(ctx context.Context, agentID, sessionID string, hours int) ([]ports.Hour, error) {
	to := u.clock.Now().Truncate(time.Hour).Add(time.Hour)
	from := to.Add(-time.Duration(hours) * time.Hour)
	list := make([]ports.Hour, hours)
	for i := range list {
		list[i].Start = from.Add(time.Duration(i) * time.Hour)
	}
	err := u.store.View(ctx, func(ctx context.Context, tx repos) error {
		if _, err := tx.Sessions().Get(ctx, agentID, sessionID); err != nil {
			return err
		}
		found, err := tx.Ledger().SessionHours(ctx, agentID, sessionID, from, to)
		for _, h := range found {
			list[h.Start.Sub(from)/time.Hour] = h
		}
		return err
	})
	return list, err
}
