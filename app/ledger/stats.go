package ledger

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Stats is what an agent's sessions did, over all and in time.
type Stats struct {
	store ports.Unit[repos]
	clock ports.Clock
}

// NewStats wires the use cases.
func NewStats(store ports.Store, clock ports.Clock) *Stats {
	return &Stats{store: narrow(store), clock: clock}
}

// Overview is the totals of an account at one moment.
type Overview struct {
	Balance        domain.Money
	Held           domain.Money
	TotalSpent     domain.Money // charges less refunds
	TotalRecharged domain.Money
	Active         int
	Creating       int
	Total          int
	UsedBytes      int64
	EventsReported int64
	SuccessRate    float64 // 1 when nothing was scored
	Rotations      int64
}

// Overview reads the counters of an account.
func (s *Stats) Overview(ctx context.Context, agentID string) (Overview, error) {
	var o Overview
	err := s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		b, err := balance(ctx, tx, agentID, s.clock.Now())
		if err != nil {
			return err
		}
		counts, err := tx.Sessions().Count(ctx, agentID)
		if err != nil {
			return err
		}
		tally, err := tx.Counters().Get(ctx, agentID)
		if err != nil {
			return err
		}
		o = Overview{Balance: b.Wallet.Balance(), Held: b.Held, TotalSpent: b.Spent, TotalRecharged: b.Wallet.Recharged,
			Active: counts.Active, Creating: counts.Creating, Total: counts.Total, UsedBytes: tally.Bytes,
			EventsReported: tally.Reported, SuccessRate: 1, Rotations: tally.Rotations}
		if tally.Scored > 0 {
			o.SuccessRate = float64(tally.Good) / float64(tally.Scored)
		}
		return nil
	})
	return o, err
}

// Range is the time that a series covers, in buckets of Step.
type Range struct {
	Step time.Duration // an hour or a day
	From time.Time     // inclusive, a full bucket
	To   time.Time     // exclusive
}

// The bounds of a range.
const (
	maxRange     = 92 * session.Day
	defaultRange = 7 * session.Day
)

// ParseRange reads the queries of a series: granularity hour or day, and dates
// as YYYY-MM-DD or RFC 3339, the end exclusive. The default is the last 7 days,
// the bucket of now included.
// The range is widened to full buckets.
func ParseRange(granularity, start, end string, now time.Time) (Range, error) {
	r := Range{Step: session.Day}
	switch granularity {
	case "", "day":
	case "hour":
		r.Step = time.Hour
	default:
		return r, domain.InvalidField("granularity", "must be hour or day")
	}
	var err error
	if r.To, err = parseDate("end_date", end, now.Truncate(r.Step).Add(r.Step)); err != nil {
		return r, err
	}
	if r.From, err = parseDate("start_date", start, r.To.Add(-defaultRange)); err != nil {
		return r, err
	}
	if !r.From.Before(r.To) {
		return r, domain.InvalidField("start_date", "must be before end_date")
	}
	if r.To.Sub(r.From) > maxRange {
		return r, domain.InvalidField("start_date", "must be at most 92 days before end_date")
	}
	r.From, r.To = r.From.Truncate(r.Step), ceil(r.To, r.Step)
	return r, nil
}

func ceil(t time.Time, step time.Duration) time.Time {
	if down := t.Truncate(step); !down.Equal(t) {
		return down.Add(step)
	}
	return t
}

func parseDate(field, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	return ParseDate(field, text)
}

// ParseDate reads a date of a query, YYYY-MM-DD or RFC 3339.
func ParseDate(field, text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 && t.Year() < 10000 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, domain.InvalidField(field, "must be YYYY-MM-DD or RFC 3339")
}

// Series sums an agent's traffic and money in buckets, oldest first, empty ones
// included. What is used up and not charged yet counts in the bucket of its traffic.
func (s *Stats) Series(ctx context.Context, agentID string, r Range) ([]ports.Hour, error) {
	return s.KeySeries(ctx, agentID, "", r)
}

// KeySeries is like Series of the sessions that a key bought; of all if keyID is empty.
func (s *Stats) KeySeries(ctx context.Context, agentID, keyID string, r Range) ([]ports.Hour, error) {
	var hours []ports.Hour
	err := s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		hours, err = hoursOf(ctx, tx, agentID, keyID, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	buckets := make([]ports.Hour, r.To.Sub(r.From)/r.Step)
	for i := range buckets {
		buckets[i].Start = r.From.Add(time.Duration(i) * r.Step)
	}
	for _, h := range hours {
		if !h.Start.Before(r.From) && h.Start.Before(r.To) {
			b := &buckets[h.Start.Sub(r.From)/r.Step]
			b.Totals = b.Totals.Plus(h.Totals)
		}
	}
	return buckets, nil
}

// hoursOf reads the hours of an account, or of the sessions that a key bought, with what is used up and not charged
// yet.
func hoursOf(ctx context.Context, tx repos, agentID, keyID string, r Range) ([]ports.Hour, error) {
	if keyID != "" {
		hours, err := tx.Statements().KeyHours(ctx, agentID, keyID, r.From, r.To)
		if err != nil {
			return nil, err
		}
		due, err := tx.Sessions().KeyUnbooked(ctx, agentID, keyID)
		return append(hours, due...), err
	}
	hours, err := tx.Statements().Hours(ctx, agentID, r.From, r.To)
	if err != nil {
		return nil, err
	}
	w, err := tx.Ledger().Wallet(ctx, agentID)
	if err != nil || w.Held.Total() == 0 {
		return hours, err
	}
	due, err := tx.Sessions().Unbooked(ctx, agentID)
	return append(hours, due...), err
}
