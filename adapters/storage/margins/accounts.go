package margins

import (
	"context"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// dayAccount is the key of a row of account_days.
type dayAccount struct {
	day     int64
	account billing.Account
}

// The sums of whole days, and the entries behind the number. With the sign these are read, not all of the time.
const (
	accountDays = `SELECT day, account, counter FROM account_days WHERE day >= ?1 AND day < ?2
		UNION ALL SELECT at / 86400000000 * 86400000000, account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
		WHERE seq > ?3 AND account <> '' AND +at >= ?1 AND +at < ?2 GROUP BY 1, 2`
	edgeOfDay = `SELECT account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
		WHERE account <> '' AND at >= ?1 AND at < ?2 GROUP BY account`
)

// accountDays sums the service's side of entries by day. Of a day that lies partly in the time the other part is read
// and taken off: of today there is none.
func (r Reports) accountDays(ctx context.Context, from, to time.Time) (map[dayAccount]domain.Money, error) {
	begin, end := column.Micros(from), column.Micros(to)
	first, last := begin/DayMicros*DayMicros, (end+DayMicros-1)/DayMicros*DayMicros
	sums := map[dayAccount]domain.Money{}
	d, err := upTo(r.Unit, proof.AccountDays)
	if err != nil {
		return nil, err
	}
	err = r.Rows(ctx, accountDays, []any{first, last, d.Mark}, func(row engine.Row) error {
		var k dayAccount
		var sum domain.Money
		err := row.Scan(&k.day, &k.account, &sum)
		sums[k] += sum
		return err
	})
	for _, edge := range [...]struct{ day, from, to int64 }{{first, first, begin}, {last - DayMicros, end, last}} {
		if err != nil || edge.from == edge.to {
			continue
		}
		err = r.Rows(ctx, edgeOfDay, []any{edge.from, edge.to}, func(row engine.Row) error {
			k := dayAccount{day: edge.day}
			var sum domain.Money
			err := row.Scan(&k.account, &sum)
			sums[k] -= sum
			return err
		})
	}
	return sums, err
}

// Accounts is that of ports.Overview.
func (r Reports) Accounts(ctx context.Context, from, to time.Time) (map[billing.Account]domain.Money, error) {
	days, err := r.accountDays(ctx, from, to)
	sums := map[billing.Account]domain.Money{}
	for k, sum := range days {
		sums[k.account] += sum
	}
	return sums, work.Wrap("sum accounts", err)
}

// Received is that of ports.Overview.
func (r Reports) Received(ctx context.Context, from, to time.Time) (map[time.Time]domain.Money, error) {
	days, err := r.accountDays(ctx, from, to)
	sums := map[time.Time]domain.Money{}
	for k, sum := range days {
		if k.account == billing.USDT {
			sums[time.UnixMicro(k.day).UTC()] = -sum
		}
	}
	return sums, work.Wrap("sum recharges by day", err)
}
