package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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

var errMarginKey = domain.InvalidField("by", "must be provider, product, agent or day")

// marginKeys are the columns that entries and orders are grouped by.
var marginKeys = map[ports.MarginKey]struct{ entries, orders, hours, replaced string }{
	ports.ByProvider: {"COALESCE(s.provider, '')", "o.provider", "s.provider", "r.provider"},
	ports.ByProduct:  {"COALESCE(s.product_no, '')", "COALESCE(s.product_no, '')", "s.product_no", "s.product_no"},
	ports.ByAgent:    {"e.agent_id", "COALESCE(s.agent_id, '')", "s.agent_id", "r.agent_id"},
	ports.ByDay: {"CAST(e.at / 86400000000 AS TEXT)", "CAST(o.decided_at / 86400000000 AS TEXT)",
		"CAST(h.hour / 86400000000 AS TEXT)", "CAST(r.decided_at / 86400000000 AS TEXT)"},
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
	sumCosts = `SELECT %s AS key, CAST(COALESCE(SUM(o.cost), 0) AS BIGINT),
		CAST(COALESCE(SUM(CASE WHEN o.kind <> 'replacement' THEN 1 ELSE 0 END), 0) AS BIGINT)
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1`
	sumReplaced = `SELECT %s AS key, COUNT(CASE WHEN r.status = 'done' THEN 1 END),
		COUNT(CASE WHEN r.status = 'ended' THEN 1 END) FROM replacements r JOIN sessions s ON s.id = r.session_id
		WHERE r.status IN ('done', 'ended') AND r.decided_at >= ?1 AND r.decided_at < ?2 GROUP BY 1`
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
	if err == nil {
		args := []any{column.Micros(from), column.Micros(to)}
		err = r.Rows(ctx, fmt.Sprintf(sumReplaced, marginKeys[by].replaced), args, func(row engine.Row) error {
			var name string
			var m billing.Margin
			if err := row.Scan(&name, &m.Replaced, &m.Returned); err != nil {
				return err
			}
			return add(name, m)
		})
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
// meanwhile, or soon after: a session is charged at most hourly. Those agents are listed first: PostgreSQL would look
// for a charge of each hour among all entries of its agent.
const (
	sumUnpricedOrders = `SELECT %s AS key, o.provider, COALESCE(s.product_no, ''), o.type, 1, o.quantity, o.days, 0,
		CAST(COALESCE(SUM(o.bytes), 0) AS BIGINT), COUNT(*)
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.kind <> 'replacement' AND o.cost = 0
		AND o.decided_at >= ?1 AND o.decided_at < ?2 GROUP BY 1, 2, 3, 4, 6, 7`
	sumTraffic = `SELECT %s AS key, s.provider, s.product_no, s.type, 0, 0, 0, 0,
		CAST(SUM(h.up + h.down) AS BIGINT), COUNT(DISTINCT s.id)
		FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE h.counted IN (0, 1) AND h.agent_id IN (WITH c AS MATERIALIZED (SELECT DISTINCT e.agent_id
			FROM ledger_entries e WHERE e.account <> '' AND e.account = 'revenue' AND e.at >= ?1 AND e.at < ?3)
			SELECT agent_id FROM c)
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

// What the report of margins has of a UTC day is kept once the day is over for good: its entries, orders and hours
// never change then. A report sums the days that are kept, and reads entries and hours of the others alone.

const (
	// chargedAfter is how long after its end what was used on a day is charged at the latest. The proof has it too.
	chargedAfter = 4 * 24 * time.Hour
	// keepDayAfter is how long after its end a day is kept: no charge of that time is on its way then.
	keepDayAfter = chargedAfter + time.Hour
	// keepDays is how many days a run keeps.
	keepDays = 20
)

// span is a part of the time of a report.
type span struct {
	from, to int64
	kept     bool
}

func (t *tx) keptDays() (k proof.KeptDays, err error) {
	err = proof.ValueOf(t.Conn, proof.MarginDays, &k)
	return k, work.Wrap("read which days are kept", err)
}

// spans cuts the time of a report into what is kept and what is not.
func (r overview) spans(from, to time.Time) ([]span, error) {
	all := span{from: column.Micros(from), to: column.Micros(to)}
	k, err := r.keptDays()
	start := max(k.From, (all.from+dayMicros-1)/dayMicros*dayMicros)
	end := min(k.To, all.to/dayMicros*dayMicros)
	if err != nil || start >= end {
		return []span{all}, err
	}
	var list []span
	if all.from < start {
		list = append(list, span{from: all.from, to: start})
	}
	list = append(list, span{start, end, true})
	if end < all.to {
		list = append(list, span{from: end, to: all.to})
	}
	return list, nil
}

// keptBy returns the expression of what kept rows are grouped by, and by which key they were summed: each row of a key
// is in one day.
func keptBy(by ports.MarginKey) (name string, key ports.MarginKey) {
	if by == ports.ByDay {
		return "CAST(day / 86400000000 AS TEXT)", ports.ByProvider
	}
	return "name", by
}

func (r overview) keptMargins(
	ctx context.Context, s span, by ports.MarginKey, add func(string, billing.Margin) error,
) error {
	name, key := keptBy(by)
	return r.Rows(ctx, "SELECT "+name+`, CAST(SUM(charged) AS BIGINT), CAST(SUM(refunded) AS BIGINT),
		CAST(SUM(trial) AS BIGINT), CAST(SUM(given) AS BIGINT), CAST(SUM(cost) AS BIGINT), CAST(SUM(orders) AS BIGINT)
		FROM margin_days WHERE day >= ?1 AND day < ?2 AND by_key = ?3 GROUP BY 1`, []any{s.from, s.to, string(key)},
		func(row engine.Row) error {
			var name string
			var m billing.Margin
			err := row.Scan(&name, &m.Charged, &m.Refunded, &m.Trial, &m.Given, &m.Cost, &m.Orders)
			if err != nil {
				return err
			}
			return add(name, m)
		})
}

func (r overview) keptDeliveries(
	ctx context.Context, s span, by ports.MarginKey, add func(ports.Delivery) error,
) error {
	name, key := keptBy(by)
	return r.deliveries(ctx, "SELECT "+name+`, provider, product_no, type, ordered, ips, days, charged,
		CAST(SUM(bytes) AS BIGINT), CAST(SUM(n) AS BIGINT) FROM delivery_days
		WHERE day >= ?1 AND day < ?2 AND by_key = ?3 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8`, []any{s.from, s.to, string(key)}, add)
}

// keepMarginDays keeps the next days that are over for good.
func (s *Store) keepMarginDays(ctx context.Context) error {
	over := column.Micros(s.clock.Now().Add(-keepDayAfter))
	for range keepDays {
		more, err := s.keepNextDay(ctx, over)
		if err != nil || !more {
			return work.Wrap("keep the margin of a day", err)
		}
	}
	return nil
}

func (s *Store) keepNextDay(ctx context.Context, over int64) (more bool, err error) {
	var k, was proof.KeptDays
	margins := map[ports.MarginKey]map[string]billing.Margin{}
	deliveries := map[ports.MarginKey][]ports.Delivery{}
	err = s.View(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) (err error) {
		r := overview{unit.(*tx)}
		if k, err = r.keptDays(); err != nil {
			return err
		}
		was = k
		if k.To == 0 {
			var first int64
			err = r.Row("SELECT at FROM ledger_entries ORDER BY seq LIMIT 1").Scan(&first)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			k.From = first / dayMicros * dayMicros
			k.To = k.From
		}
		day := span{from: k.To, to: k.To + dayMicros}
		if more = err == nil && day.to <= over; !more {
			return err
		}
		for _, by := range []ports.MarginKey{ports.ByProvider, ports.ByProduct, ports.ByAgent} {
			sums, list := map[string]billing.Margin{}, []ports.Delivery(nil)
			err = errors.Join(err, r.sumMargins(ctx, day, by, func(name string, m billing.Margin) error {
				sums[name] = sums[name].Plus(m)
				return nil
			}), r.sumDeliveries(ctx, day, by, chargedAfter, func(d ports.Delivery) error {
				list = append(list, d)
				return nil
			}))
			margins[by], deliveries[by] = sums, list
		}
		return err
	})
	if err != nil || !more {
		return false, err
	}
	day := k.To
	k.To += dayMicros
	mark, err := json.Marshal(k)
	if err != nil {
		return false, err
	}
	return true, s.Update(ctx, ports.ReadSet{}, func(_ context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		t.Serialize("sum up")
		now, err := t.keptDays()
		if err != nil || now != was {
			return err // another process kept it, or the cost of an order changed: it is summed again
		}
		var errs []error
		for by, sums := range margins {
			for name, m := range sums {
				errs = append(errs, t.Later("keep the margin of a day", keepMargin, day, string(by), name, int64(m.Charged),
					int64(m.Refunded), int64(m.Trial), int64(m.Given), int64(m.Cost), int64(m.Orders)))
			}
			for _, d := range deliveries[by] {
				errs = append(errs, t.Later("keep the deliveries of a day", keepDelivery, day, string(by), d.Key, d.Provider,
					d.ProductNo, string(d.Type), column.Flag(d.Ordered), int64(d.IPs), int64(d.Days), int64(d.Charged),
					d.Bytes, int64(d.Count)))
			}
		}
		return errors.Join(append(errs, t.Later("keep which days are kept", setServiceValue, proof.MarginDays, mark))...)
	})
}

// Of two processes that keep a day at once both are right.
const (
	keepMargin = `INSERT INTO margin_days (day, by_key, name, charged, refunded, trial, given, cost, orders)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING`
	keepDelivery = `INSERT INTO delivery_days (day, by_key, name, provider, product_no, type, ordered, ips, days, charged,
		bytes, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`
)

// What entries bring the accounts of the service is summed by UTC day in account_days, up to a number of an entry. A
// sum over days is what is there and the entries behind that number, which are few. Calls of agents do not write it.

const (
	// daysEntries is how many numbers of entries a unit sums.
	daysEntries = 10_000
	// daysAfter is how old a number is before the entries up to it are summed on PostgreSQL, where they get their
	// numbers before they are committed: the server ends each statement, and a transaction without one, much sooner.
	daysAfter = time.Minute
)

const sumDays = `INSERT INTO account_days (day, account, counter)
	SELECT at / 86400000000 * 86400000000, account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
	WHERE seq > ?1 AND seq <= ?2 AND account <> '' GROUP BY 1, 2
	ON CONFLICT (day, account) DO UPDATE SET counter = account_days.counter + excluded.counter`

func (t *tx) summedDays() (d proof.SummedDays, err error) {
	err = proof.ValueOf(t.Conn, proof.AccountDays, &d)
	return d, work.Wrap("read up to which entry days are summed", err)
}

// sumAccountDays sums the entries that are new since it ran last.
func (s *Store) sumAccountDays(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		err := s.Update(ctx, ports.ReadSet{}, func(_ context.Context, unit ports.Tx) (err error) {
			more, err = unit.(*tx).sumNextDays(s.clock.Now())
			return err
		})
		if err != nil {
			return work.Wrap("sum accounts by day", err)
		}
	}
	return nil
}

// sumNextDays sums the next entries, and reports whether there are more.
func (t *tx) sumNextDays(now time.Time) (more bool, err error) {
	t.Serialize("sum up")
	d, err := t.summedDays()
	if err != nil {
		return false, err
	}
	var last int64
	if err := t.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries").Scan(&last); err != nil {
		return false, err
	}
	was, bound := d, last
	if t.Conn.Concurrent() {
		if (d.Bound < last || d.Next < last) && now.Sub(d.At).Abs() >= daysAfter {
			d.Bound, d.Next, d.At = d.Next, last, now
		}
		bound = min(d.Bound, last)
	}
	if to := min(bound, d.Mark+daysEntries); to > d.Mark {
		if err := t.Later("sum accounts by day", sumDays, d.Mark, to); err != nil {
			return false, err
		}
		d.Mark = to
	}
	if d == was {
		return false, nil
	}
	text, err := json.Marshal(d)
	if err != nil {
		return false, err
	}
	return d.Mark < bound, t.Later("keep up to which entry days are summed", setServiceValue, proof.AccountDays, text)
}
