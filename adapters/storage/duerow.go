package storage

import (
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// dueColumns are what a dueRow reads.
const dueColumns = "s.bytes, s.price, s.held_trial + s.held_own, s.charged_trial + s.charged_own, " +
	"s.up + s.down, s.usage_at, s.top_ups"

// dueRow is what a dynamic session is owed for.
type dueRow struct {
	bytes, used, at      int64
	price, held, charged domain.Money
	topUps               string
}

func (d *dueRow) targets() []any {
	return []any{&d.bytes, &d.price, &d.held, &d.charged, &d.used, &d.at, &d.topUps}
}

// due returns what the session used up of what it holds and was not charged for.
func (d *dueRow) due() (domain.Money, error) {
	topUps, err := splitTopUps(d.topUps)
	return session.Session{Type: session.Dynamic, Bytes: d.bytes, Price: d.price, TopUps: topUps, Money: session.Money{
		Held: billing.Funds{Own: d.held}, Charged: billing.Funds{Own: d.charged}}}.ChargeDue(d.used), err
}

// sumsOfDue sums by the hour of the last use.
func sumsOfDue(holding []dueRow) (hours []ports.Hour, err error) {
	sums := map[time.Time]domain.Money{}
	for _, d := range holding {
		due, err := d.due()
		if err != nil {
			return nil, err
		}
		if due > 0 {
			sums[column.Time(d.at).Truncate(time.Hour)] += due
		}
	}
	for start, due := range sums {
		hours = append(hours, ports.Hour{Start: start, Totals: ports.Totals{Charged: due}})
	}
	return hours, nil
}
