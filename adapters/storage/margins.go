package storage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var errMarginKey = domain.InvalidField("by", "must be provider, product, agent or day")

// marginKeys are the columns that entries and orders are grouped by.
var marginKeys = map[ports.MarginKey]struct{ entries, orders, hours string }{
	ports.ByProvider: {"COALESCE(s.provider, '')", "o.provider", "s.provider"},
	ports.ByProduct:  {"COALESCE(s.product_no, '')", "COALESCE(s.product_no, '')", "s.product_no"},
	ports.ByAgent:    {"e.agent_id", "COALESCE(s.agent_id, '')", "s.agent_id"},
	ports.ByDay: {"CAST(e.at / 86400000000 AS TEXT)", "CAST(o.decided_at / 86400000000 AS TEXT)",
		"CAST(h.hour / 86400000000 AS TEXT)"},
}

// An entry without a session, or an order without one, would be lost in another join. The sums of
// PostgreSQL are no BIGINT. The text of the partial index of SQLite is repeated.
const (
	sumRevenue = `SELECT %s AS key,
		CAST(COALESCE(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.type = 'refund' THEN -e.counter ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.account = 'revenue' THEN -e.trial - e.held_trial ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.account = 'corrections' THEN -e.counter ELSE 0 END), 0) AS BIGINT)
		FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.account <> '' AND e.account IN ('revenue', 'corrections') AND e.at >= ?1 AND e.at < ?2 GROUP BY 1`
	sumCosts = `SELECT %s AS key, CAST(COALESCE(SUM(o.cost), 0) AS BIGINT), COUNT(*)
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1`
)

func (r overview) Margins(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) (all map[string]billing.Margin, err error) {
	if _, known := marginKeys[by]; !known {
		return nil, errMarginKey
	}
	all = map[string]billing.Margin{}
	add := func(name string, m billing.Margin) error {
		name, err := marginKey(by, name)
		all[name] = all[name].Plus(m)
		return err
	}
	spans, err := r.spans(from, to)
	for _, s := range spans {
		if err == nil && s.kept {
			err = r.keptMargins(ctx, s, by, add)
		} else if err == nil {
			err = r.sumMargins(ctx, s, by, add)
		}
	}
	return all, work.Wrap("sum margins", err)
}

// sumMargins sums the entries and orders of a span.
func (r overview) sumMargins(
	ctx context.Context, s span, by ports.MarginKey, add func(string, billing.Margin) error,
) error {
	key, args := marginKeys[by], []any{s.from, s.to}
	err := r.Rows(ctx, fmt.Sprintf(sumRevenue, key.entries), args, func(row engine.Row) error {
		var name string
		var m billing.Margin
		if err := row.Scan(&name, &m.Charged, &m.Refunded, &m.Trial, &m.Given); err != nil {
			return err
		}
		return add(name, m)
	})
	if err == nil {
		err = r.Rows(ctx, fmt.Sprintf(sumCosts, key.orders), args, func(row engine.Row) error {
			var name string
			var m billing.Margin
			if err := row.Scan(&name, &m.Cost, &m.Orders); err != nil {
				return err
			}
			return add(name, m)
		})
	}
	return err
}

// marginKey returns the key of a group as reports have it.
func marginKey(by ports.MarginKey, name string) (string, error) {
	if by != ports.ByDay {
		return name, nil
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly), err
}

// What no seller named a cost for. A session without an order is served in process: its traffic is billed to
// the operator by the byte, its terms by the charge of each. Hours are found by the agents that were charged
// meanwhile, or soon after: a session is charged at most hourly.
const (
	sumUnpricedOrders = `SELECT %s AS key, o.provider, COALESCE(s.product_no, ''), o.type, 1, o.quantity, o.days, 0,
		CAST(COALESCE(SUM(o.bytes), 0) AS BIGINT), COUNT(*)
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.cost = 0 AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1, 2, 3, 4, 6, 7`
	sumTraffic = `SELECT %s AS key, s.provider, s.product_no, s.type, 0, 0, 0, 0,
		CAST(SUM(h.up + h.down) AS BIGINT), COUNT(DISTINCT s.id)
		FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE h.counted IN (0, 1) AND h.agent_id IN (SELECT e.agent_id FROM ledger_entries e WHERE e.account <> ''
			AND e.account = 'revenue' AND e.at >= ?1 AND e.at < ?3)
		AND h.hour >= ?1 AND h.hour < ?2 AND h.up + h.down > 0 AND s.type = 'dynamic'
		AND NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id) GROUP BY 1, 2, 3, 4`
	sumTerms = `SELECT %s AS key, s.provider, s.product_no, s.type, 0, s.quantity, s.days, e.counter, 0, COUNT(*)
		FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE e.account <> '' AND e.account = 'revenue' AND e.type = 'charge' AND e.at >= ?1 AND e.at < ?2
		AND s.type = 'static' AND NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id)
		GROUP BY 1, 2, 3, 4, 6, 7, 8`
)

func (r overview) Deliveries(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) (list []ports.Delivery, err error) {
	if _, known := marginKeys[by]; !known {
		return nil, errMarginKey
	}
	add := func(d ports.Delivery) (err error) {
		d.Key, err = marginKey(by, d.Key)
		list = append(list, d)
		return err
	}
	spans, err := r.spans(from, to)
	for _, s := range spans {
		if err == nil && s.kept {
			err = r.keptDeliveries(ctx, s, by, add)
		} else if err == nil {
			err = r.sumDeliveries(ctx, s, by, 2*time.Hour, add)
		}
	}
	return list, work.Wrap("sum deliveries without a cost", err)
}

// sumDeliveries sums what was delivered in a span, to agents that were charged in it or within a time after it.
func (r overview) sumDeliveries(
	ctx context.Context, s span, by ports.MarginKey, within time.Duration, add func(ports.Delivery) error,
) error {
	key, args := marginKeys[by], []any{s.from, s.to}
	err := r.deliveries(ctx, fmt.Sprintf(sumUnpricedOrders, key.orders), args, add)
	if err == nil {
		err = r.deliveries(ctx, fmt.Sprintf(sumTraffic, key.hours), append(args, s.to+within.Microseconds()), add)
	}
	if err == nil {
		err = r.deliveries(ctx, fmt.Sprintf(sumTerms, key.entries), args, add)
	}
	return err
}

func (r overview) deliveries(
	ctx context.Context, query string, args []any, add func(ports.Delivery) error,
) error {
	return r.Rows(ctx, query, args, func(row engine.Row) error {
		var d ports.Delivery
		var typ string
		var ordered int
		err := row.Scan(&d.Key, &d.Provider, &d.ProductNo, &typ, &ordered, &d.IPs, &d.Days, &d.Charged, &d.Bytes, &d.Count)
		if err != nil {
			return err
		}
		d.Type, d.Ordered = session.Type(typ), ordered == 1
		return add(d)
	})
}
