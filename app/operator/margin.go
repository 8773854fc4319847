package operator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Money is what came in and what is left of it, over all agents.
type Money struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	catalog *catalogs.Catalog
}

// NewMoney returns the use cases. The catalog has the configured costs.
func NewMoney(store ports.Store, clock ports.Clock, c *catalogs.Catalog) *Money {
	return &Money{narrow(store), clock, c}
}

// Agents lists agents with their money, the newest first.
func (u *Money) Agents(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (list domain.List[ports.AgentMoney], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Overview().Agents(ctx, f, page)
		return err
	})
	return list, err
}

// MarginLine is one line of a report.
type MarginLine struct {
	Key string // a provider, a product, an agent or a day
	billing.Margin
}

// MarginReport is what agents paid and what sellers took from a time until before another.
type MarginReport struct {
	From, To time.Time
	By       ports.MarginKey
	Lines    []MarginLine // days in their order; else the best margin first
	Total    billing.Margin
	// Unbooked is what live sessions used up and are charged by the hour, if To is not before now: it is in no line.
	Unbooked domain.Money
	// Accounts is the service's side of all entries of that time. What Total has of the account
	// billing.Revenue is equal to it.
	Accounts map[billing.Account]domain.Money
}

// ErrDisagrees reports a report that is not what the ledger has.
var ErrDisagrees = &domain.Error{Kind: domain.Internal, Code: "REPORT_DISAGREES",
	Message: "the report does not agree with the ledger; verify the ledger to find the rows"}

// MaxReport bounds the time of a report.
const MaxReport = 3660 * 24 * time.Hour

// Margin reports on one snapshot. A zero To is now, a zero From is 30 days before To.
func (u *Money) Margin(ctx context.Context, from, to time.Time, by ports.MarginKey) (r MarginReport, err error) {
	now := u.clock.Now()
	if to.IsZero() {
		to = now
	}
	if from.IsZero() {
		from = billing.Day(to).AddDate(0, 0, -30)
	}
	if !from.Before(to) || to.Sub(from) > MaxReport {
		return r, domain.InvalidField("to", "must be after from, and at most ten years after it")
	}
	r = MarginReport{From: from, To: to, By: by}
	var groups map[string]billing.Margin
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if groups, err = u.margins(ctx, tx, from, to, by); err != nil {
			return err
		}
		if r.Accounts, err = tx.Overview().Accounts(ctx, from, to); err != nil || to.Before(now) {
			return err
		}
		unbooked, err := tx.Overview().Unbooked(ctx)
		r.Unbooked = 0
		for _, x := range unbooked {
			r.Unbooked += x
		}
		return err
	})
	if err != nil {
		return r, err
	}
	for key, m := range groups {
		r.Lines, r.Total = append(r.Lines, MarginLine{key, m}), r.Total.Plus(m)
	}
	slices.SortFunc(r.Lines, func(a, b MarginLine) int {
		if by == ports.ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Margin.Margin(), a.Margin.Margin()), cmp.Compare(a.Key, b.Key))
	})
	if r.Total.Revenue() != r.Accounts[billing.Revenue] {
		return r, ErrDisagrees
	}
	return r, nil
}

// margins returns the groups of a report, with what their deliveries cost by the configuration of today where
// no seller named it.
func (u *Money) margins(
	ctx context.Context, tx repos, from, to time.Time, by ports.MarginKey,
) (map[string]billing.Margin, error) {
	groups, err := tx.Overview().Margins(ctx, from, to, by)
	if err != nil {
		return nil, err
	}
	deliveries, err := tx.Overview().Deliveries(ctx, from, to, by)
	for _, d := range deliveries {
		m := groups[d.Key]
		cost, known := u.estimate(d)
		m.Estimated += cost
		switch {
		case known:
		case d.Ordered:
			m.Unpriced += d.Count
		default:
			m.UnpricedSessions += d.Count
		}
		groups[d.Key] = m
	}
	return groups, err
}

// estimate returns what the configured cost makes of deliveries, and whether there is one. What this host
// delivers by itself costs nothing unless a cost is configured.
func (u *Money) estimate(d ports.Delivery) (cost domain.Money, known bool) {
	product, _ := u.catalog.Product(d.ProductNo) // one that is sold no more has no cost
	days := d.Days
	for _, term := range product.Durations {
		if !d.Ordered && term.Price*domain.Money(d.IPs) == d.Charged {
			days = term.Days // of a renewal, which may be longer than the session's first term
		}
	}
	one := product.Source(d.Provider).CostFor(days)
	if one == 0 {
		local, ok := u.catalog.InProcess(d.Provider)
		return 0, ok && !local.Capabilities().ViaUpstream
	}
	if d.Type == session.Dynamic {
		return domain.Money(domain.MulDivUp(d.Bytes, int64(one), billing.GB)), true
	}
	return one * domain.Money(d.IPs) * domain.Money(d.Count), true
}

// Days is money in and margin by UTC day, the newest first.
type Days []DayLine

// DayLine is one UTC day.
type DayLine struct {
	Day      time.Time
	Received domain.Money // recharges
	billing.Margin
}

// Growth is what a UTC day brought.
type Growth struct {
	Day        time.Time
	Received   domain.Money // recharges
	Registered int          // accounts that registered themselves
}

// Growth returns the last n UTC days, oldest first, the current one included.
func (u *Money) Growth(ctx context.Context, n int) (list []Growth, err error) {
	to := billing.Day(u.clock.Now()).AddDate(0, 0, 1)
	from := to.AddDate(0, 0, -n)
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		received, err := tx.Overview().Received(ctx, from, to)
		if err != nil {
			return err
		}
		registered, err := tx.Overview().Registered(ctx, from, to)
		list = make([]Growth, n)
		for i := range list {
			day := from.AddDate(0, 0, i)
			list[i] = Growth{day, received[day], registered[day]}
		}
		return err
	})
	return list, err
}

// Days returns the last n UTC days, the current one included, and how many sessions are live by status.
func (u *Money) Days(ctx context.Context, n int) (days Days, live map[session.Status]int, err error) {
	to := billing.Day(u.clock.Now()).AddDate(0, 0, 1)
	from := to.AddDate(0, 0, -n)
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		margins, err := u.margins(ctx, tx, from, to, ports.ByDay)
		if err != nil {
			return err
		}
		received, err := tx.Overview().Received(ctx, from, to)
		if err != nil {
			return err
		}
		days = nil
		for day := to.AddDate(0, 0, -1); !day.Before(from); day = day.AddDate(0, 0, -1) {
			days = append(days, DayLine{day, received[day], margins[day.Format(time.DateOnly)]})
		}
		live, err = tx.Overview().Live(ctx)
		return err
	})
	return days, live, err
}
