package billing

import (
	"slices"
	"time"

	"agentproxy/domain"
)

// ErrBudgetExceeded is returned if the agent's own budget does not allow a
// cost.
var ErrBudgetExceeded = &domain.Error{Kind: domain.PaymentRequired, Code: "BUDGET_EXCEEDED",
	Message: "your own budget does not allow this purchase; raise the budget and try again"}

// Budget limits what an agent spends. A nil limit is unlimited.
type Budget struct {
	Daily      *domain.Money // a UTC day
	Total      *domain.Money // ever
	Thresholds []int         // percents, 1 to 100, ascending
	Paused     bool
}

// MaxThresholds is the largest number of thresholds.
const MaxThresholds = 20

// Check validates a budget that an agent sets.
func (b Budget) Check() error {
	var issues []domain.FieldIssue
	if b.Daily != nil && *b.Daily < 0 {
		issues = append(issues, domain.FieldIssue{Field: "daily_limit", Issue: "must be 0 or more"})
	}
	if b.Total != nil && *b.Total < 0 {
		issues = append(issues, domain.FieldIssue{Field: "total_limit", Issue: "must be 0 or more"})
	}
	out := func(p int) bool { return p < 1 || p > 100 }
	if len(b.Thresholds) > MaxThresholds || slices.ContainsFunc(b.Thresholds, out) {
		issues = append(issues, domain.FieldIssue{Field: "alert_thresholds", Issue: "must be at most 20 percents " +
			"from 1 to 100"})
	}
	if issues != nil {
		return domain.InvalidFields(issues...)
	}
	return nil
}

// Day returns the beginning of the UTC day of t.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// SpentOn returns what was spent on the UTC day of now: the holds taken on that
// day, less what was released of them. A later day counts as that day: a clock that was ahead lifts no limit.
func (w Wallet) SpentOn(now time.Time) domain.Money {
	if w.SpentDay.Before(Day(now)) {
		return 0
	}
	return w.SpentToday
}

// SpentEver returns the sum of all charges and open holds.
func (w Wallet) SpentEver() domain.Money { return w.Charged + w.Held.Total() }

// ReachedThreshold is a threshold of a limit that was reached.
type ReachedThreshold struct {
	Limit   string // daily or total
	Percent int
}

// ThresholdsReached lists the thresholds that spending x more reaches and that
// were not reached before.
func (w Wallet) ThresholdsReached(x domain.Money, now time.Time) (reached []ReachedThreshold) {
	for _, l := range []struct {
		name  string
		limit *domain.Money
		spent domain.Money
	}{{"daily", w.Budget.Daily, w.SpentOn(now)}, {"total", w.Budget.Total, w.SpentEver()}} {
		if l.limit == nil {
			continue
		}
		for _, p := range w.Budget.Thresholds {
			at := share(*l.limit, p)
			if l.spent < at && l.spent+x >= at {
				reached = append(reached, ReachedThreshold{l.name, p})
			}
		}
	}
	return reached
}

// share returns a percentage of a limit, rounded up, without a product that
// could overflow.
func share(limit domain.Money, percent int) domain.Money {
	p := domain.Money(percent)
	return limit/100*p + (limit%100*p+99)/100
}

// MaySpend returns ErrBudgetExceeded if spending x more would exceed the
// budget. It subtracts, because a sum with a clamped cost could overflow.
func (w Wallet) MaySpend(x domain.Money, now time.Time) error {
	b, exceeded := w.Budget, ErrBudgetExceeded.With("scope", "account")
	switch {
	case b.Paused:
		return exceeded.Msgf("your own budget pauses spending; set paused to false in it and try again")
	case b.Daily != nil && x > *b.Daily-w.SpentOn(now):
		return exceeded.With("daily_limit", *b.Daily).With("spent_today", w.SpentOn(now)).With("required", x)
	case b.Total != nil && x > *b.Total-w.SpentEver():
		return exceeded.With("total_limit", *b.Total).With("spent_total", w.SpentEver()).With("required", x)
	}
	return nil
}
