package billing_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

func limit(x domain.Money) *domain.Money { return &x }

func TestBudgetCheck(t *testing.T) {
	for _, c := range []struct {
		claim string
		b     billing.Budget
		want  []string
	}{
		{"none is fine", billing.Budget{}, nil},
		{"limits of 0 are fine", billing.Budget{Daily: limit(0), Total: limit(0)}, nil},
		{"1 and 100 percent are fine", billing.Budget{Thresholds: []int{1, 100}}, nil},
		{"20 thresholds are fine", billing.Budget{Thresholds: slices.Repeat([]int{50}, 20)}, nil},
		{"21 are not", billing.Budget{Thresholds: slices.Repeat([]int{50}, 21)}, []string{"alert_thresholds"}},
		{"0 percent is not", billing.Budget{Thresholds: []int{0}}, []string{"alert_thresholds"}},
		{"101 percent is not", billing.Budget{Thresholds: []int{50, 101}}, []string{"alert_thresholds"}},
		{"every fault is named", billing.Budget{Daily: limit(-1), Total: limit(-1), Thresholds: []int{0}},
			[]string{"daily_limit", "total_limit", "alert_thresholds"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			err := c.b.Check()
			var e *domain.Error
			var got []string
			if errors.As(err, &e) {
				for _, issue := range e.Details["fields"].([]domain.FieldIssue) {
					got = append(got, issue.Field)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("faults in %v, want %v", got, c.want)
			}
		})
	}
}

func TestMaySpend(t *testing.T) {
	w := billing.Wallet{Charged: 30, Held: billing.Funds{Own: 20}, SpentDay: billing.Day(noon), SpentToday: 10}
	for _, c := range []struct {
		claim  string
		budget billing.Budget
		x      domain.Money
		now    time.Time
		refuse string // the detail or word that gives the reason
	}{
		{"no budget, no refusal", billing.Budget{}, 1 << 60, noon, ""},
		{"up to the daily limit", billing.Budget{Daily: limit(15)}, 5, noon, ""},
		{"not beyond it", billing.Budget{Daily: limit(15)}, 6, noon, "daily_limit"},
		{"a new day starts at nothing", billing.Budget{Daily: limit(15)}, 15, noon.Add(12 * time.Hour), ""},
		{"a day is a UTC day", billing.Budget{Daily: limit(15)}, 15, noon.Add(11 * time.Hour).In(time.FixedZone("", 5*3600)), "daily_limit"},
		{"up to the total limit", billing.Budget{Total: limit(60)}, 10, noon, ""},
		{"not beyond it, held money counts", billing.Budget{Total: limit(60)}, 11, noon, "total_limit"},
		{"paused refuses everything", billing.Budget{Paused: true}, 0, noon, "paused"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			w := w
			w.Budget = c.budget
			err := w.MaySpend(c.x, c.now)
			if (err != nil) != (c.refuse != "") || err != nil && !errors.Is(err, billing.ErrBudgetExceeded) {
				t.Fatalf("got %v", err)
			}
			var e *domain.Error
			if errors.As(err, &e) && c.refuse != "paused" && e.Details[c.refuse] == nil {
				t.Errorf("the details are %v", e.Details)
			}
		})
	}
	t.Run("a cost beyond counting is refused", func(t *testing.T) {
		w := w
		w.Budget = billing.Budget{Daily: limit(15)}
		if err := w.MaySpend(1<<63-1, noon); err == nil {
			t.Error("it is allowed")
		}
	})
}

func TestCrossings(t *testing.T) {
	day := time.Date(2026, 5, 15, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		claim        string
		daily, total *domain.Money
		today, ever  domain.Money
		x            domain.Money
		thresholds   []int
		want         []billing.ReachedThreshold
	}{
		{"no limit, no threshold", nil, nil, 0, 0, 100, []int{50}, nil},
		{"below", limit(100), nil, 0, 0, 49, []int{50}, nil},
		{"reached", limit(100), nil, 0, 0, 50, []int{50}, []billing.ReachedThreshold{{Limit: "daily", Percent: 50}}},
		{"reached before", limit(100), nil, 50, 0, 10, []int{50}, nil},
		{"both limits, several thresholds", limit(100), limit(200), 10, 90, 90, []int{50, 90, 100},
			[]billing.ReachedThreshold{{"daily", 50}, {"daily", 90}, {"daily", 100}, {"total", 50}, {"total", 90}}},
		{"a share is rounded up", limit(3), nil, 0, 0, 1, []int{50}, nil},
		{"and reached then", limit(3), nil, 0, 0, 2, []int{50}, []billing.ReachedThreshold{{"daily", 50}}},
		{"nothing overflows", limit(1 << 62), nil, 0, 0, 1 << 61, []int{50, 51}, []billing.ReachedThreshold{{"daily", 50}}},
	} {
		w := billing.Wallet{Budget: billing.Budget{Daily: c.daily, Total: c.total, Thresholds: c.thresholds},
			SpentDay: day, SpentToday: c.today, Charged: c.ever}
		if got := w.ThresholdsReached(c.x, day.Add(time.Hour)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.claim, got, c.want)
		}
	}
	w := billing.Wallet{Budget: billing.Budget{Daily: limit(100), Thresholds: []int{50}}, SpentDay: day, SpentToday: 60}
	if got := w.ThresholdsReached(50, day.Add(24*time.Hour)); len(got) != 1 {
		t.Errorf("the day after: %v", got)
	}
}

// A day of spending that is to come, as after a clock that was ahead, counts as today.
func TestADayToComeLiftsNoLimit(t *testing.T) {
	day := time.Date(2026, 5, 15, 0, 0, 0, 0, time.UTC)
	ahead := day.Add(48 * time.Hour)
	w := billing.Wallet{Available: billing.Funds{Own: 500}, Budget: billing.Budget{Daily: limit(100)}, SpentDay: ahead, SpentToday: 60}
	now := day.Add(time.Hour)
	if err := w.MaySpend(50, now); err == nil {
		t.Error("110 of 100 are spent")
	}
	w, err := w.Apply(billing.Posting{Entry: billing.Entry{Type: billing.HoldEntry}, Day: day, Spent: 40})
	if err != nil || !w.SpentDay.Equal(day) || w.SpentToday != 100 || w.MaySpend(1, now) == nil {
		t.Errorf("after 40 more %s are spent on %v, %v", w.SpentToday, w.SpentDay, err)
	}
	if err := w.MaySpend(100, now.Add(24*time.Hour)); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestCrossesLow(t *testing.T) {
	for _, c := range []struct {
		after, amount domain.Money
		want          bool
	}{
		{domain.Dollar - 1, -1, true}, {domain.Dollar, -1, false}, {domain.Dollar - 1, 0, false}, {0, -1, false},
		{domain.Dollar - 1, 1, false}, {0, -domain.Dollar, true},
	} {
		e := billing.Entry{Available: billing.Funds{Own: c.amount}, BalanceAfter: c.after}
		if got := e.CrossesLow(); got != c.want {
			t.Errorf("%s to %s: %t", c.amount, c.after, got)
		}
	}
}
