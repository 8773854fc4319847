package sessions

import (
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// DueColumns are what a DueRow reads.
const DueColumns = "s.bytes, s.price, s.held_trial + s.held_own, s.charged_trial + s.charged_own, " +
	"s.up + s.down, s.usage_at, s.top_ups"

// DueRow is what a dynamic session is owed for.
type DueRow struct {
	bytes, used, At      int64
	price, held, charged domain.Money
	topUps               string
}

// Targets returns what DueColumns are scanned into.
func (d *DueRow) Targets() []any {
	return []any{&d.bytes, &d.price, &d.held, &d.charged, &d.used, &d.At, &d.topUps}
}

// HoldingTable has the sessions of agents that hold money, which views read ahead.
var HoldingTable = &rows.Table[string, []DueRow]{Order: work.HoldingOrder}

// Due returns what the session used up of what it holds and was not charged for.
func (d *DueRow) Due() (domain.Money, error) {
	topUps, err := codec.SplitTopUps(d.topUps)
	return session.Session{Type: session.Dynamic, Bytes: d.bytes, Price: d.price, TopUps: topUps, Money: session.Money{
		Held: billing.Funds{Own: d.held}, Charged: billing.Funds{Own: d.charged}}}.ChargeDue(d.used), err
}

// SumsOfDue sums by the hour of the last use.
func SumsOfDue(holding []DueRow) (hours []ports.Hour, err error) {
	sums := map[time.Time]domain.Money{}
	for _, d := range holding {
		due, err := d.Due()
		if err != nil {
			return nil, err
		}
		if due > 0 {
			sums[column.Time(d.At).Truncate(time.Hour)] += due
		}
	}
	for start, due := range sums {
		hours = append(hours, ports.Hour{Start: start, Totals: ports.Totals{Charged: due}})
	}
	return hours, nil
}
