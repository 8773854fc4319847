package procurement

import (
	"context"
	"errors"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/procurement"
)

// rowsOfDay is the age from which on an order may be in the sums of its day: clocks of hosts may be hours apart.
const rowsOfDay = 12 * time.Hour

// What a seller charges for an order may change as long as the order lives. Its cost is in the sums of
// the day on which it was confirmed, for the report of margins, so both change together.
const (
	keptKeys = `FROM (SELECT 'provider' AS by_key UNION ALL SELECT 'product' UNION ALL SELECT 'agent') k
		CROSS JOIN upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id WHERE o.id = ?2`
	keptName = `CASE k.by_key WHEN 'provider' THEN o.provider WHEN 'product' THEN COALESCE(s.product_no, '')
		ELSE COALESCE(s.agent_id, '') END`
	correctMargin = `INSERT INTO margin_sums (day, by_key, name, charged, refunded, trial, given, cost, orders)
		SELECT CAST(?1 AS BIGINT), k.by_key, ` + keptName + `, 0, 0, 0, 0, CAST(?3 AS BIGINT), 0 ` + keptKeys + `
		ON CONFLICT (day, by_key, name) DO UPDATE SET cost = margin_sums.cost + excluded.cost`
	correctDeliveries = `INSERT INTO delivery_sums (day, by_key, name, provider, product_no, type, ordered, ips, days,
		charged, bytes, n) SELECT CAST(?1 AS BIGINT), k.by_key, ` + keptName + `, o.provider, COALESCE(s.product_no, ''),
		o.type, 1, o.quantity, o.days, 0, CAST(?3 AS BIGINT) * o.bytes, CAST(?3 AS BIGINT) ` + keptKeys + `
		AND o.kind <> 'replacement'
		ON CONFLICT (day, by_key, name, provider, product_no, type, ordered, ips, days, charged)
		DO UPDATE SET bytes = delivery_sums.bytes + excluded.bytes, n = delivery_sums.n + excluded.n`
)

// setValue keeps a value of the service under a name.
const setValue = `INSERT INTO service_values (name, value) VALUES (?1, ?2)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// correctKeptDay changes the sums of the day of a confirmed order whose cost Put changes. A day that is not summed yet
// is summed once this unit is over, with the new cost.
func (r orders) correctKeptDay(ctx context.Context, o procurement.Order) error {
	if o.Status != procurement.Confirmed || r.Database.Now().Sub(o.DecidedAt) < rowsOfDay {
		return nil
	}
	was, err := r.Get(ctx, o.ID)
	if errors.Is(err, procurement.ErrOrderNotFound) || err == nil && (was.Status != o.Status || was.Cost == o.Cost) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Serialize("sum up")
	var k proof.KeptDays
	if err := proof.ValueOf(r.Conn, proof.OrderDays, &k); err != nil {
		return work.Wrap("read which days are kept", err)
	}
	day := column.Micros(was.DecidedAt.Truncate(24 * time.Hour))
	if day < k.From || day >= k.To {
		return nil
	}
	err = r.Later("correct the cost of a kept day", correctMargin, day, o.ID, int64(o.Cost-was.Cost))
	if without := column.Flag(o.Cost == 0) - column.Flag(was.Cost == 0); without != 0 {
		err = errors.Join(err, r.Later("correct the deliveries of a kept day", correctDeliveries, day, o.ID, without))
	}
	return err
}
