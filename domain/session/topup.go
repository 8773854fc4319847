package session

import (
	"cmp"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// Run is traffic that was added to a session at a price of its own.
type Run struct {
	Bytes int64
	Price domain.Money // of a GB
}

// MaxRuns is how often the price may have changed between the additions to one session.
const MaxRuns = 64

// AutoTopUp is what a session buys by itself. The zero value is nothing.
type AutoTopUp struct {
	BelowPercent int   // of the traffic bought that is left, 1 to 99
	Bytes        int64 // of each addition
	MaxPerDay    int   // additions on a UTC day
	// MaxPrice is the highest price of a GB that is paid; 0: that of the session.
	MaxPrice domain.Money
}

// The bounds of an AutoTopUp.
const (
	MaxBelowPercent  = 99
	MaxTopUpsPerDay  = 1000
	retryAutoTopUpIn = time.Minute
)

// TopUps is what was added to the traffic of a session, and what it adds by itself.
type TopUps struct {
	// Runs follow the traffic that the session was created with. Additions at the price of the last
	// of it are part of it.
	Runs []Run
	No   int          // additions so far
	Day  time.Time    // the UTC day of the last one
	Held domain.Money // for the additions of that day

	Auto      AutoTopUp
	AutoDay   time.Time // the UTC day of the last addition of Auto
	AutoCount int       // on that day
	Failed    string    // the code for which the last addition of Auto was refused; empty if it was not
	FailedAt  time.Time
}

// ErrNotMetered refuses to add traffic to a session that is not billed by it.
var ErrNotMetered = domain.ErrInvalid.Msgf("traffic is added to a dynamic session; this one is static: renew it")

// ErrTopUpLimit refuses a further addition of AutoTopUp on a day.
var ErrTopUpLimit = &domain.Error{Kind: domain.Conflict, Code: "MAX_PER_DAY",
	Message: "the session bought max_per_day times today; it continues tomorrow, or add traffic yourself"}

// ErrTopUpPrice refuses an addition of AutoTopUp whose price has risen.
var ErrTopUpPrice = &domain.Error{Kind: domain.Conflict, Code: "PRICE_MISMATCH",
	Message: "a GB costs more than auto_top_up may pay; raise max_price_per_gb, or add traffic yourself"}

// Check returns INVALID_REQUEST with every field that is out of bounds.
func (a AutoTopUp) Check() error {
	var c checker
	a.check(&c)
	return c.err()
}

func (a AutoTopUp) check(c *checker) {
	if a.BelowPercent < 1 || a.BelowPercent > MaxBelowPercent {
		c.add("auto_top_up.below_percent", "must be a whole number from 1 to %d", MaxBelowPercent)
	}
	if a.Bytes <= 0 || a.Bytes > MaxGB*billing.GB || a.Bytes%TrafficStep != 0 {
		c.add("auto_top_up.add_gb", "must be a number of GB above 0 with at most 3 decimals")
	}
	if a.MaxPerDay < 1 || a.MaxPerDay > MaxTopUpsPerDay {
		c.add("auto_top_up.max_per_day", "must be a whole number from 1 to %d", MaxTopUpsPerDay)
	}
	if a.MaxPrice < 0 {
		c.add("auto_top_up.max_price_per_gb", "must be an amount above 0 with at most 6 decimals")
	}
}

// CheckAddition returns INVALID_REQUEST for a number of bytes that cannot be added to any session.
func CheckAddition(bytes int64) error {
	if bytes <= 0 || bytes > MaxGB*billing.GB || bytes%TrafficStep != 0 {
		return domain.InvalidField("traffic_gb", "must be a number of GB above 0 with at most 3 decimals")
	}
	return nil
}

// MayTopUp returns the error for which no traffic can be added. The type is checked before the state.
func (s Session) MayTopUp() error {
	if s.Type != Dynamic {
		return ErrNotMetered
	}
	_, err := s.moveActive()
	return err
}

// TopUp adds traffic at a price. What was bought before keeps its own.
func (s Session) TopUp(bytes int64, price domain.Money) (Session, error) {
	if err := s.MayTopUp(); err != nil {
		return s, err
	}
	if err := CheckAddition(bytes); err != nil {
		return s, err
	}
	if bytes > MaxGB*billing.GB-s.Bytes {
		return s, domain.InvalidField("traffic_gb", "makes more than %d GB of the session; buy another one", MaxGB)
	}
	runs := slices.Clone(s.TopUps.Runs) // another copy of the session has these
	switch last := len(runs) - 1; {
	case last < 0 && price == s.Price: // more of what it was created with
	case last >= 0 && price == runs[last].Price:
		runs[last].Bytes += bytes
	case last+1 == MaxRuns:
		return s, domain.InvalidField("traffic_gb", "cannot be added: its price changed too often; buy another session")
	default:
		runs = append(runs, Run{bytes, price})
	}
	s.Bytes, s.TopUps.Runs = s.Bytes+bytes, runs
	s.TopUps.No++
	return s, nil
}

// HeldForTopUp notes what was held for an addition, and whether Auto made it.
func (s Session) HeldForTopUp(cost domain.Money, auto bool, now time.Time) Session {
	day := billing.Day(now)
	if day.After(s.TopUps.Day) {
		s.TopUps.Day, s.TopUps.Held = day, 0
	}
	s.TopUps.Held += cost
	s.TopUps.Failed, s.TopUps.FailedAt = "", time.Time{}
	if !auto {
		return s
	}
	if day.After(s.TopUps.AutoDay) {
		s.TopUps.AutoDay, s.TopUps.AutoCount = day, 0
	}
	s.TopUps.AutoCount++
	return s
}

// AutoTopUpDue reports whether Auto is to buy after a number of bytes was used: less than its share of
// the traffic is left, and less than one addition, so that one is enough. After a refusal it tries
// again every minute, and once more when nothing is left.
func (s Session) AutoTopUpDue(used int64, now time.Time) bool {
	a, left := s.TopUps.Auto, s.Bytes-used
	if a.Bytes == 0 || s.Type != Dynamic || s.Status != Active ||
		left >= a.Bytes || left >= domain.MulDivUp(s.Bytes, int64(a.BelowPercent), 100) {
		return false
	}
	return left <= 0 || s.TopUps.FailedAt.IsZero() || !now.Before(s.TopUps.FailedAt.Add(retryAutoTopUpIn))
}

// MaxTopUpPrice returns the highest price of a GB at which Auto buys.
func (s Session) MaxTopUpPrice() domain.Money { return cmp.Or(s.TopUps.Auto.MaxPrice, s.Price) }

// MayAutoTopUp returns ErrTopUpPrice if a GB costs more than Auto may pay, and ErrTopUpLimit if it bought as
// often as it may on the UTC day of now. A clock that went back begins no other day.
func (s Session) MayAutoTopUp(price domain.Money, now time.Time) error {
	if price > s.MaxTopUpPrice() {
		return ErrTopUpPrice.With("price_per_gb", price).With("max_price_per_gb", s.MaxTopUpPrice())
	}
	if !billing.Day(now).After(s.TopUps.AutoDay) && s.TopUps.AutoCount >= s.TopUps.Auto.MaxPerDay {
		return ErrTopUpLimit
	}
	return nil
}

// AutoTopUpRefused notes why Auto could not buy. It reports whether the agent was not notified of
// that yet.
func (s Session) AutoTopUpRefused(code string, now time.Time) (after Session, news bool) {
	news = s.TopUps.Failed != code
	s.TopUps.Failed, s.TopUps.FailedAt = code, now
	return s, news
}

// WithAutoTopUp sets what the session buys by itself. What was bought today still counts.
func (s Session) WithAutoTopUp(a AutoTopUp) Session {
	s.TopUps.Auto = a
	s.TopUps.Failed, s.TopUps.FailedAt = "", time.Time{}
	return s
}

// TrafficCost returns the price of the first bytes of a session: of each run rounded down by itself.
func (s Session) TrafficCost(used int64) domain.Money {
	used = min(used, s.Bytes)
	first := s.Bytes
	for _, r := range s.TopUps.Runs {
		first -= r.Bytes
	}
	cost := billing.TrafficCharge(min(used, first), s.Price)
	used -= first
	for _, r := range s.TopUps.Runs {
		if used <= 0 {
			break
		}
		cost += billing.TrafficCharge(min(used, r.Bytes), r.Price)
		used -= r.Bytes
	}
	return cost
}

// SpentLast returns by how much the spending of which UTC day is less when what the session still
// holds, since a time, is given back: additions are used after what was bought before them, so it is
// what the last of them held.
func (s Session) SpentLast(held time.Time) (domain.Money, time.Time) {
	kept, day := s.Money.Held.Total(), billing.Day(held)
	if s.TopUps.Day.IsZero() || s.TopUps.Day.Equal(day) {
		return kept, day
	}
	return min(kept, s.TopUps.Held), s.TopUps.Day
}

// LastRun returns the number of the run of the last addition, 0 for that of the traffic that the
// session was created with, and after how many bytes it begins.
func (s Session) LastRun() (run int, start int64) {
	run = len(s.TopUps.Runs)
	if run == 0 {
		return 0, 0
	}
	return run, s.Bytes - s.TopUps.Runs[run-1].Bytes
}
