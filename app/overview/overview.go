// Package overview holds what a person looks at first: which sessions are at risk, what failed, and how
// long the money lasts.
package overview

import (
	"context"
	"slices"
	"time"

	"agentproxy/app/telemetry"
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

// Summary is how the sessions of an agent fare.
type Summary struct {
	Risks    map[health.Risk]int // of the live sessions
	Failures []Failure           // newest first
}

// Failure is an event of a session that did not work.
type Failure struct {
	SessionID string
	eventlog.Event
}

// The bounds of Summarize: failures are those of the sessions that were used last, among the live
// ones and the last ones that were created, and of each among about the newest events.
const (
	recentSessions = 20
	lastSessions   = 100
	recentEvents   = 300
)

// Summarize counts the live sessions of an agent by risk and lists the newest failures of the
// sessions that were used last.
func (u *Service) Summarize(ctx context.Context, agentID string, failures int) (Summary, error) {
	var l Summary
	err := u.store.View(ctx, func(ctx context.Context, tx repos) error {
		l = Summary{Risks: map[health.Risk]int{}}
		list, err := tx.Health().Glances(ctx, agentID, lastSessions)
		if err != nil {
			return err
		}
		err = u.eachRisk(ctx, tx, agentID, list, func(_ ports.SessionGlance, risk health.Risk) { l.Risks[risk]++ })
		if err != nil {
			return err
		}
		l.Failures, err = failuresOf(ctx, tx, usedLast(list), failures)
		return err
	})
	return l, err
}

// eachRisk passes the risk of each live session on.
func (u *Service) eachRisk(ctx context.Context, tx repos, agentID string, list []ports.SessionGlance,
	each func(ports.SessionGlance, health.Risk)) error {
	now := u.clock.Now()
	withWorkers := map[string]health.Risk{}
	var ids []string
	for _, g := range list {
		if g.Workers && !g.Status.Over() {
			ids = append(ids, g.ID)
		}
	}
	for part := range slices.Chunk(ids, crewsAtOnce) {
		states, err := tx.Health().Get(ctx, agentID, part)
		if err != nil {
			return err
		}
		workers, err := tx.Workers().HealthOf(ctx, part)
		if err != nil {
			return err
		}
		for id, own := range states {
			verdict, _ := own.State.VerdictWith(now, own.Type == session.Static, telemetry.StatesOf(workers[id]))
			withWorkers[id] = verdict.RiskLevel
		}
	}
	for _, g := range list {
		if g.Status.Over() {
			continue
		}
		risk, ok := withWorkers[g.ID]
		if !ok {
			risk = g.Health.Risk(now)
		}
		each(g, risk)
	}
	return nil
}

// crewsAtOnce is of how many sessions the states of the workers are in memory at a time.
const crewsAtOnce = 50

// usedLast returns the ids of the sessions that had traffic or reports last. A session without
// either comes after all others, the newest first.
func usedLast(list []ports.SessionGlance) (ids []string) {
	at := func(g ports.SessionGlance) time.Time {
		if last := g.Health.LastAt(); last.After(g.UsedAt) {
			return last
		}
		return g.UsedAt
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b ports.SessionGlance) int { return at(b).Compare(at(a)) })
	for _, g := range list[:min(len(list), recentSessions)] {
		ids = append(ids, g.ID)
	}
	return ids
}

func failuresOf(ctx context.Context, tx repos, ids []string, limit int) (found []Failure, err error) {
	events, err := tx.Events().Newest(ctx, ids, recentEvents)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		for _, e := range events[id] {
			if e.IsFailure() {
				found = append(found, Failure{id, e})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Failure) int { return b.At.Compare(a.At) })
	return found[:min(len(found), limit)], nil
}

// AtRisk lists a page of the ids of the live sessions of a risk that a filter lets through, newest
// first.
func (u *Service) AtRisk(ctx context.Context, agentID string, of health.Risk, filter ports.SessionFilter,
	page domain.Page) (ids domain.List[string], err error) {
	if !slices.Contains(health.Risks, of) {
		return ids, domain.InvalidField("risk", "must be low, medium, high or critical")
	}
	err = u.store.View(ctx, func(ctx context.Context, tx repos) error {
		list, err := tx.Health().LiveGlances(ctx, agentID, filter)
		if err != nil {
			return err
		}
		ids = domain.List[string]{Page: page}
		return u.eachRisk(ctx, tx, agentID, list, func(g ports.SessionGlance, risk health.Risk) {
			if risk != of {
				return
			}
			if ids.Total >= page.Offset() && len(ids.Items) < page.Size {
				ids.Items = append(ids.Items, g.ID)
			}
			ids.Total++
		})
	})
	return ids, err
}

// Hours sums the traffic and money of one session by hour, oldest first, hours without any
// included. The last hour is that of now.
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
