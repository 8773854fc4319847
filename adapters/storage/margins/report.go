package margins

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Reports reads the sums in a unit.
type Reports struct{ *work.Unit }

var errKey = domain.InvalidField("by", "must be provider, product, agent or day")

// keys are the columns that entries, orders, hours and replacements are grouped by. SQLite would read all entries by
// the index of a column alone.
var keys = map[ports.MarginKey]struct{ entries, orders, hours, replaced string }{
	ports.ByProvider: {"COALESCE(s.provider, '')", "o.provider", "s.provider", "r.provider"},
	ports.ByProduct:  {"COALESCE(s.product_no, '')", "COALESCE(s.product_no, '')", "s.product_no", "s.product_no"},
	ports.ByAgent:    {"COALESCE(e.agent_id, '')", "COALESCE(s.agent_id, '')", "s.agent_id", "r.agent_id"},
	ports.ByDay: {"CAST(e.at / 86400000000 AS TEXT)", "CAST(o.decided_at / 86400000000 AS TEXT)",
		"CAST(h.hour / 86400000000 AS TEXT)", "CAST(r.decided_at / 86400000000 AS TEXT)"},
}

// An entry without a session, or an order without one, would be lost in another join. The sums of PostgreSQL are no
// BIGINT. Of entries by their time the text of the partial index of SQLite is repeated; with the sign those behind a
// number are read, and not all of the time.
const (
	paid = `CAST(COALESCE(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.type = 'refund' THEN -e.counter ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.account = 'revenue' THEN -e.trial - e.held_trial ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN e.account = 'corrections' THEN -e.counter ELSE 0 END), 0) AS BIGINT)`
	byTime = "e.account <> '' AND e.at >= ?1 AND e.at < ?2"
	behind = "e.seq > ?3 AND +e.at >= ?1 AND +e.at < ?2"
	paidIn = "SELECT %s AS key, " + paid + `, 0, 0 FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE %s AND e.account IN ('revenue', 'corrections') GROUP BY 1`
	paidDays = `SELECT %s, CAST(SUM(charged) AS BIGINT), CAST(SUM(refunded) AS BIGINT), CAST(SUM(trial) AS BIGINT),
		CAST(SUM(given) AS BIGINT), CAST(SUM(cost) AS BIGINT), CAST(SUM(orders) AS BIGINT)
		FROM margin_sums WHERE day >= ?1 AND day < ?2 AND by_key = ?3 GROUP BY 1`
	costsIn = `SELECT %s AS key, 0, 0, 0, 0, CAST(COALESCE(SUM(o.cost), 0) AS BIGINT), ` + realOrders + `
		FROM upstream_orders o%s LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1`
	replacedIn = `SELECT %s AS key, COUNT(CASE WHEN r.status = 'done' THEN 1 END),
		COUNT(CASE WHEN r.status = 'ended' THEN 1 END) FROM replacements r%s JOIN sessions s ON s.id = r.session_id
		WHERE r.status IN ('done', 'ended') AND r.decided_at >= ?1 AND r.decided_at < ?2 GROUP BY 1`
)

// What no seller named a cost for. A session without an order is served in process: its traffic is billed to the
// operator by the byte, its terms by the charge of each. Of a part of a day, hours are found by the agents that were
// charged meanwhile, or soon after: a session is charged at most hourly. Those agents are listed first: PostgreSQL
// would look for a charge of each hour among all entries of its agent.
const (
	inProcess = "NOT EXISTS (SELECT 1 FROM upstream_orders p WHERE p.session_id = s.id)"
	isUse     = "h.up + h.down > 0 AND s.type = 'dynamic' AND " + inProcess
	isTerm    = "e.account = 'revenue' AND e.type = 'charge' AND s.type = 'static' AND " + inProcess
	termsIn   = `SELECT %s AS key, s.provider, s.product_no, s.type, 0, s.quantity, s.days, e.counter, 0, COUNT(*)
		FROM ledger_entries e JOIN sessions s ON s.id = e.session_id WHERE %s AND ` + isTerm + `
		GROUP BY 1, 2, 3, 4, 6, 7, 8`
	used = `s.provider, s.product_no, s.type, 0, 0, 0, 0, CAST(SUM(h.up + h.down) AS BIGINT), COUNT(DISTINCT s.id)`
	// A session that used more on that day is counted with that.
	usedSince = `s.provider, s.product_no, s.type, 0, 0, 0, 0, CAST(SUM(h.up + h.down) AS BIGINT), COUNT(DISTINCT CASE WHEN
		EXISTS (SELECT 1 FROM usage_hours u WHERE u.agent_id = h.agent_id AND u.session_id = h.session_id AND u.counted = 1
		AND u.hour >= h.hour / 86400000000 * 86400000000 AND u.hour < h.hour AND u.up + u.down > 0) THEN NULL ELSE s.id END)`
	usedIn = "SELECT %s AS key, " + used + ` FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE h.counted IN (0, 1) AND h.agent_id IN (WITH c AS MATERIALIZED (SELECT DISTINCT e.agent_id
			FROM ledger_entries e WHERE e.account <> '' AND e.account = 'revenue' AND e.at >= ?1 AND e.at < ?3)
			SELECT agent_id FROM c)
		AND h.hour >= ?1 AND h.hour < ?2 AND ` + isUse + ` GROUP BY 1, 2, 3, 4`
	usedUncounted = "SELECT %s AS key, " + usedSince + ` FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE h.counted = 0 AND +h.hour >= ?1 AND +h.hour < ?2 AND ` + isUse + `
		GROUP BY 1, 2, 3, 4, h.hour / 86400000000`
	usedUnsummed = "SELECT %s AS key, " + used + ` FROM agent_hours a%s CROSS JOIN usage_hours h
		JOIN sessions s ON s.id = h.session_id WHERE a.up + a.down <> a.delivered AND a.delivered = 0
		AND a.hour >= ?1 AND a.hour < ?2 AND h.counted = 1 AND h.agent_id = a.agent_id AND h.hour = a.hour AND ` + isUse + `
		GROUP BY 1, 2, 3, 4, h.hour / 86400000000`
	unpricedIn = `SELECT %s AS key, o.provider, COALESCE(s.product_no, ''), o.type, 1, o.quantity, o.days, 0,
		CAST(COALESCE(SUM(o.bytes), 0) AS BIGINT), COUNT(*)
		FROM upstream_orders o%s LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.kind <> 'replacement' AND o.cost = 0
		AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1, 2, 3, 4, 6, 7`
	deliveredDays = `SELECT %s, provider, product_no, type, ordered, ips, days, charged, CAST(SUM(bytes) AS BIGINT),
		CAST(SUM(n) AS BIGINT) FROM delivery_sums WHERE day >= ?1 AND day < ?2 AND by_key = ?3
		GROUP BY 1, 2, 3, 4, 5, 6, 7, 8`
	// chargedWithin is how long after it what was used in a part of a day is charged.
	chargedWithin = 2 * time.Hour
)

// window is the time of a report: whole days, of which there are sums, and parts of days. Of a day that goes on the
// sums are read too, and the entries of later are taken off: nothing, but for clocks that are ahead.
type window struct {
	from, to    int64
	first, last int64 // whole days
	later       []part
	parts       []part
	ordered     []part // not in the sums of orders
}

// part is a part of the time of a report.
type part struct{ from, to int64 }

func (r Reports) window(from, to time.Time) (window, error) {
	w := window{from: column.Micros(from), to: column.Micros(to)}
	w.first, w.last = endOfDay(w.from), w.to/DayMicros*DayMicros
	if !to.Before(r.Database.Now()) {
		w.last = endOfDay(w.to)
		w.later = []part{{w.to, w.last}}
	}
	w.parts = []part{{w.from, w.first}, {w.last, w.to}}
	if w.first >= w.last {
		w.first, w.last, w.later, w.parts = 0, 0, nil, []part{{w.from, w.to}}
	}
	k, err := ordersOf(r.Unit)
	w.ordered = []part{{w.from, w.to}}
	if start, end := max(w.first, k.From), min(w.last, k.To); start < end {
		w.ordered = []part{{w.from, start}, {end, w.to}}
	}
	empty := func(p part) bool { return p.from >= p.to }
	w.parts, w.later = slices.DeleteFunc(w.parts, empty), slices.DeleteFunc(w.later, empty)
	w.ordered = slices.DeleteFunc(w.ordered, empty)
	return w, err
}

func endOfDay(micros int64) int64 { return (micros + DayMicros - 1) / DayMicros * DayMicros }

// summed returns the expression of what sums are grouped by, and by which key they were summed: each row of a key is in
// one day.
func summed(by ports.MarginKey) (name string, key ports.MarginKey) {
	if by == ports.ByDay {
		return "CAST(day / 86400000000 AS TEXT)", ports.ByProvider
	}
	return "name", by
}

// named returns the key of a group as reports have it.
func named(by ports.MarginKey, name string) (string, error) {
	if by != ports.ByDay {
		return name, nil
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly), err
}

// Partial indexes.
const (
	ordersByTime = "upstream_orders_decided"
	hoursOpen    = "agent_hours_open"
)

// grouped puts what is grouped by and an index into a query.
func (r Reports) grouped(query, key, index string) string {
	return fmt.Sprintf(query, key, r.Database.By(index))
}

// query is one of those of which a report is made: of what it adds, or takes off.
type query struct {
	text string
	args []any
	off  bool
}

func queries(parts []part, text string, off bool) (list []query) {
	for _, p := range parts {
		list = append(list, query{text, []any{p.from, p.to}, off})
	}
	return list
}

// Margins is that of ports.Overview.
func (r Reports) Margins(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) (all map[string]billing.Margin, err error) {
	key, known := keys[by]
	if !known {
		return nil, errKey
	}
	w, err := r.window(from, to)
	if err != nil {
		return nil, err
	}
	d, err := upTo(r.Unit, proof.MarginEntries)
	if err != nil {
		return nil, err
	}
	name, of := summed(by)
	list := []query{{fmt.Sprintf(paidDays, name), []any{w.first, w.last, string(of)}, false},
		{fmt.Sprintf(paidIn, key.entries, behind), []any{w.first, w.last, d.Mark}, false}}
	list = append(list, queries(w.parts, fmt.Sprintf(paidIn, key.entries, byTime), false)...)
	list = append(list, queries(w.later, fmt.Sprintf(paidIn, key.entries, byTime), true)...)
	list = append(list, queries(w.ordered, r.grouped(costsIn, key.orders, ordersByTime), false)...)
	all = map[string]billing.Margin{}
	add := func(name string, m billing.Margin) error {
		name, err := named(by, name)
		all[name] = all[name].Plus(m)
		return err
	}
	for _, q := range list {
		err = r.Rows(ctx, q.text, q.args, func(row engine.Row) error {
			var name string
			var m billing.Margin
			err := row.Scan(&name, &m.Charged, &m.Refunded, &m.Trial, &m.Given, &m.Cost, &m.Orders)
			if q.off {
				m = billing.Margin{Charged: -m.Charged, Refunded: -m.Refunded, Trial: -m.Trial, Given: -m.Given}
			}
			if err != nil {
				return err
			}
			return add(name, m)
		})
		if err != nil {
			return nil, work.Wrap("sum margins", err)
		}
	}
	replaced := r.grouped(replacedIn, key.replaced, "replacements_decided")
	err = r.Rows(ctx, replaced, []any{w.from, w.to}, func(row engine.Row) error {
		var name string
		var m billing.Margin
		if err := row.Scan(&name, &m.Replaced, &m.Returned); err != nil {
			return err
		}
		return add(name, m)
	})
	maps.DeleteFunc(all, func(_ string, m billing.Margin) bool { return m == billing.Margin{} })
	return all, work.Wrap("sum margins", err)
}

// Deliveries is that of ports.Overview.
func (r Reports) Deliveries(
	ctx context.Context, from, to time.Time, by ports.MarginKey,
) (all []ports.Delivery, err error) {
	key, known := keys[by]
	if !known {
		return nil, errKey
	}
	w, err := r.window(from, to)
	if err != nil {
		return nil, err
	}
	d, err := upTo(r.Unit, proof.MarginEntries)
	if err != nil {
		return nil, err
	}
	name, of := summed(by)
	days := []any{w.first, w.last}
	list := []query{{fmt.Sprintf(deliveredDays, name), append(days, string(of)), false},
		{fmt.Sprintf(usedUncounted, key.hours), days, false},
		{r.grouped(usedUnsummed, key.hours, hoursOpen), days, false},
		{fmt.Sprintf(termsIn, key.entries, behind), append(days, d.Mark), false}}
	for _, p := range w.parts {
		args := []any{p.from, p.to, p.to + chargedWithin.Microseconds()}
		list = append(list, query{fmt.Sprintf(usedIn, key.hours), args, false})
	}
	list = append(list, queries(w.parts, fmt.Sprintf(termsIn, key.entries, byTime), false)...)
	list = append(list, queries(w.later, fmt.Sprintf(termsIn, key.entries, byTime), true)...)
	list = append(list, queries(w.ordered, r.grouped(unpricedIn, key.orders, ordersByTime), false)...)
	sums := map[ports.Delivery]ports.Delivery{}
	for _, q := range list {
		err = r.Rows(ctx, q.text, q.args, func(row engine.Row) error {
			var d ports.Delivery
			var kind string
			var ordered int
			err := row.Scan(&d.Key, &d.Provider, &d.ProductNo, &kind, &ordered, &d.IPs, &d.Days, &d.Charged, &d.Bytes,
				&d.Count)
			if err != nil {
				return err
			}
			d.Type, d.Ordered = session.Type(kind), ordered == 1
			bytes, n := d.Bytes, d.Count
			if q.off {
				n = -n
			}
			d.Bytes, d.Count = 0, 0
			sum := sums[d]
			sums[d] = ports.Delivery{Bytes: sum.Bytes + bytes, Count: sum.Count + n}
			return nil
		})
		if err != nil {
			return nil, work.Wrap("sum deliveries without a cost", err)
		}
	}
	for d, sum := range sums {
		if d.Key, err = named(by, d.Key); err != nil {
			return nil, err
		}
		if d.Bytes, d.Count = sum.Bytes, sum.Count; sum != (ports.Delivery{}) {
			all = append(all, d)
		}
	}
	return all, nil
}
