package margins

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
)

const (
	// dayOver is how long after its end the orders of a day are summed: a unit that confirms one is over then. What
	// changes later is corrected in the same unit (adapters/storage/procurement).
	dayOver = 25 * time.Hour

	sumDayCosts = `INSERT INTO margin_sums (day, by_key, name, charged, refunded, trial, given, cost, orders)
		SELECT CAST(?1 AS BIGINT), k.by_key, ` + keyOfOrder + `, 0, 0, 0, 0, CAST(SUM(o.cost) AS BIGINT), ` + realOrders + `
		FROM upstream_orders o CROSS JOIN ` + allKeys + ` LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 2, 3
		ON CONFLICT (day, by_key, name) DO UPDATE SET cost = margin_sums.cost + excluded.cost,
		orders = margin_sums.orders + excluded.orders`
	sumDayOrders = `INSERT INTO delivery_sums
		(day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n)
		SELECT CAST(?1 AS BIGINT), k.by_key, ` + keyOfOrder + `, o.provider, COALESCE(s.product_no, ''), o.type, 1,
		o.quantity, o.days, 0, CAST(SUM(o.bytes) AS BIGINT), COUNT(*)
		FROM upstream_orders o CROSS JOIN ` + allKeys + ` LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.kind <> 'replacement' AND o.cost = 0 AND o.decided_at >= ?1 AND o.decided_at < ?2
		GROUP BY 2, 3, 4, 5, 6, 8, 9 ` + addDelivery
	keyOfOrder = `CASE k.by_key WHEN 'provider' THEN o.provider WHEN 'product' THEN COALESCE(s.product_no, '')
		ELSE COALESCE(s.agent_id, '') END`
	realOrders = "COUNT(CASE WHEN o.kind <> 'replacement' THEN 1 END)"
)

// SumOrders sums the orders of the next day that is over, and reports whether there was one.
func SumOrders(_ context.Context, u *work.Unit) (more bool, err error) {
	u.Serialize("sum up")
	k, err := ordersOf(u)
	if err != nil {
		return false, err
	}
	if k.To == 0 {
		var first int64
		err = u.Row("SELECT at FROM ledger_entries ORDER BY seq LIMIT 1").Scan(&first)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		k.From = first / DayMicros * DayMicros
		k.To = k.From
	}
	day, end := k.To, k.To+DayMicros
	if err != nil || end > column.Micros(u.Database.Now().Add(-dayOver)) {
		return false, work.Wrap("read the time of the first entry", err)
	}
	k.To = end
	text, err := json.Marshal(k)
	return true, errors.Join(err, u.Later("sum the costs of a day", sumDayCosts, day, end),
		u.Later("sum the orders of a day", sumDayOrders, day, end),
		u.Later("keep of which days orders are summed", setValue, proof.OrderDays, text))
}

func ordersOf(u *work.Unit) (k proof.KeptDays, err error) {
	err = proof.ValueOf(u.Conn, proof.OrderDays, &k)
	return k, work.Wrap("read of which days orders are summed", err)
}
