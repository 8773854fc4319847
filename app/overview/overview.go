// Package overview holds what a person looks at first: which sessions are at risk, what failed, and how
// long the money lasts.
package overview

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
	Risks  map[health.Risk]int // of the live sessions
	Causes []Cause             // of what failed, the latest first
}

// Cause is what failed in the same way: of the same host with the same code, status and type.
type Cause struct {
	Count    int
	Sessions int
	// SessionID and Event are the newest of them.
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

// Summarize counts the live sessions of an agent by risk and lists what failed last of the sessions that
// were used last, by its cause.
func (u *Service) Summarize(ctx context.Context, agentID string, causes int) (Summary, error) {
	var l Summary
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		l = Summary{Risks: map[health.Risk]int{}}
		list, err := tx.Health().Summaries(ctx, agentID, lastSessions)
		if err != nil {
			return err
		}
		err = u.eachRisk(ctx, tx, agentID, list, func(_ ports.SessionSummary, risk health.Risk) { l.Risks[risk]++ })
		if err != nil {
			return err
		}
		l.Causes, err = causesOf(ctx, tx, usedLast(list), causes)
		return err
	})
	return l, err
}

// eachRisk passes the risk of each live session on.
func (u *Service) eachRisk(ctx context.Context, tx repos, agentID string, list []ports.SessionSummary,
	each func(ports.SessionSummary, health.Risk)) error {
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
func usedLast(list []ports.SessionSummary) (ids []string) {
	at := func(g ports.SessionSummary) time.Time {
		if last := g.Health.LastAt(); last.After(g.UsedAt) {
			return last
		}
		return g.UsedAt
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b ports.SessionSummary) int { return at(b).Compare(at(a)) })
	for _, g := range list[:min(len(list), recentSessions)] {
		ids = append(ids, g.ID)
	}
	return ids
}

// causesOf groups the failures among the newest events of sessions.
func causesOf(ctx context.Context, tx repos, ids []string, limit int) ([]Cause, error) {
	events, err := tx.Events().Newest(ctx, ids, recentEvents)
	if err != nil {
		return nil, err
	}
	type kind struct {
		host, code, what string
		status           int
	}
	found := map[kind]*Cause{}
	in := map[kind]string{} // the session that was counted last
	for _, id := range ids {
		for _, e := range events[id] {
			if !e.IsFailure() {
				continue
			}
			k := kind{e.TargetHost, e.Code, e.Type, e.StatusCode}
			if found[k] == nil {
				found[k] = &Cause{SessionID: id, Event: e}
			}
			c := found[k]
			c.Count += max(e.Count, 1)
			if in[k] != id {
				in[k], c.Sessions = id, c.Sessions+1
			}
			if e.At.After(c.At) {
				c.SessionID, c.Event = id, e
			}
		}
	}
	list := make([]Cause, 0, len(found))
	for _, c := range found {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Cause) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.TargetHost, b.TargetHost), strings.Compare(a.Code, b.Code),
			strings.Compare(a.Type, b.Type), a.StatusCode-b.StatusCode)
	})
	return list[:min(len(list), limit)], nil
}

// Order is in which order live sessions are listed.
type Order string

// The orders of live sessions.
const (
	NewestFirst   Order = ""
	EndsFirst     Order = "ends" // those that never end come last
	UsedLastFirst Order = "used"
)

// compare orders two sessions; 0 keeps the newer one first.
func (o Order) compare(a, b ports.SessionSummary) int {
	switch {
	case o == UsedLastFirst:
		return b.UsedAt.Compare(a.UsedAt)
	case o != EndsFirst || a.Expires.Equal(b.Expires):
		return 0
	case a.Expires.IsZero():
		return 1
	case b.Expires.IsZero():
		return -1
	}
	return a.Expires.Compare(b.Expires)
}

// Live asks for a page of the live sessions of an agent.
type Live struct {
	AgentID string
	Risk    health.Risk // empty: any
	Filter  ports.SessionFilter
	Order   Order
	Page    domain.Page
}

// Live lists ids of live sessions. It reads a row of each session that the filter lets through.
func (u *Service) Live(ctx context.Context, in Live) (ids domain.List[string], err error) {
	switch {
	case in.Risk != "" && !slices.Contains(health.Risks, in.Risk):
		return ids, domain.InvalidField("risk", "must be low, medium, high or critical")
	case in.Order != NewestFirst && in.Order != EndsFirst && in.Order != UsedLastFirst:
		return ids, domain.InvalidField("sort", "must be ends or used")
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err := tx.Health().LiveSummaries(ctx, in.AgentID, in.Filter)
		if err != nil {
			return err
		}
		slices.SortStableFunc(list, in.Order.compare)
		ids = domain.List[string]{Page: in.Page}
		add := func(g ports.SessionSummary, risk health.Risk) {
			if in.Risk != "" && risk != in.Risk {
				return
			}
			if ids.Total >= in.Page.Offset() && len(ids.Items) < in.Page.Size {
				ids.Items = append(ids.Items, g.ID)
			}
			ids.Total++
		}
		if in.Risk != "" {
			return u.eachRisk(ctx, tx, in.AgentID, list, add)
		}
		for _, g := range list {
			add(g, "")
		}
		return nil
	})
	return ids, err
}

// Hours sums the traffic and money of one session by hour, oldest first, hours without any
// included. The last hour is that of now. What is used and not booked yet counts in the hour of the last use.
func (u *Service) Hours(ctx context.Context, agentID, sessionID string, hours int) ([]ports.Hour, error) {
	to := u.clock.Now().Truncate(time.Hour).Add(time.Hour)
	from := to.Add(-time.Duration(hours) * time.Hour)
	list := make([]ports.Hour, hours)
	for i := range list {
		list[i].Start = from.Add(time.Duration(i) * time.Hour)
	}
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		s, err := tx.Sessions().Read(ctx, agentID, sessionID)
		if err != nil {
			return err
		}
		found, err := tx.Statements().SessionHours(ctx, agentID, sessionID, from, to)
		for _, h := range found {
			list[h.Start.Sub(from)/time.Hour] = h
		}
		if at := s.Usage.UpdatedAt; !at.Before(from) && at.Before(to) {
			list[at.Sub(from)/time.Hour].Charged += s.ChargeDue(s.Usage.Used())
		}
		return err
	})
	return list, err
}
