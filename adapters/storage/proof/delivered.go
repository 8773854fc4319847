package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// Rules of what is summed of days and follows from orders, hours and terms. ?1 and ?2 are from when and until when
// orders are, ?3 from when on everything is read.
const (
	orderSums     = "the costs that are summed of a day are of its orders"
	deliverySums  = "the deliveries that are summed of a day are of its orders, and the same by each key"
	deliveredHere = "the deliveries that are summed of an agent in process are of its hours and terms"
)

const (
	dayOfOrder = "o.decided_at / " + day + " * " + day
	// keysOfOrder are the keys by which an order o of a session s is summed.
	keysOfOrder = `CASE k.by_key WHEN 'provider' THEN o.provider WHEN 'product' THEN COALESCE(s.product_no, '')
		ELSE COALESCE(s.agent_id, '') END`
	keptOrders = `FROM (SELECT 'provider' AS by_key UNION ALL SELECT 'product' UNION ALL SELECT 'agent') k
		CROSS JOIN upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.decided_at >= ?1 AND o.decided_at < ?2`

	differingOrders = `SELECT x.day, x.by_key || ' ' || x.name || ': cost ' || SUM(x.cost) || ' and ' || SUM(x.orders) ||
		' orders too much' FROM (SELECT day, by_key, name, cost, orders FROM margin_sums
		WHERE day >= ?1 AND (cost <> 0 OR orders <> 0)
		UNION ALL SELECT ` + dayOfOrder + `, k.by_key, ` + keysOfOrder + `, -o.cost,
		CASE WHEN o.kind <> 'replacement' THEN -1 ELSE 0 END ` + keptOrders + `) x
		GROUP BY x.day, x.by_key, x.name HAVING SUM(x.cost) <> 0 OR SUM(x.orders) <> 0
		ORDER BY x.day, x.by_key, x.name`

	// What was delivered in process is compared with hours and terms agent by agent, and here by the other keys with that.
	differingDeliveries = `SELECT x.day, x.by_key || ' ' || x.name || ', ' || x.provider || ' ' || x.product_no || ': ' ||
		SUM(x.bytes) || ' bytes and ' || SUM(x.n) || ' too many'
		FROM (SELECT day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n FROM delivery_sums
		WHERE day >= ?3 AND (ordered <> 0 OR by_key <> 'agent')
		UNION ALL SELECT ` + dayOfOrder + `, k.by_key, ` + keysOfOrder + `, o.provider, COALESCE(s.product_no, ''), o.type,
		1, o.quantity, o.days, 0, -o.bytes, -1 ` + keptOrders + ` AND o.kind <> 'replacement' AND o.cost = 0
		UNION ALL SELECT d.day, k.by_key, CASE k.by_key WHEN 'provider' THEN d.provider ELSE d.product_no END, d.provider,
		d.product_no, d.type, d.ordered, d.ips, d.days, d.charged, -d.bytes, -d.n FROM delivery_sums d
		CROSS JOIN (SELECT 'provider' AS by_key UNION ALL SELECT 'product') k
		WHERE d.by_key = 'agent' AND d.ordered = 0 AND d.day >= ?3) x
		GROUP BY x.day, x.by_key, x.name, x.provider, x.product_no, x.type, x.ordered, x.ips, x.days, x.charged
		HAVING SUM(x.bytes) <> 0 OR SUM(x.n) <> 0 ORDER BY x.day, x.by_key, x.name`

	// summedHere are the days ?3 until before ?4 of a range of agents. Each day is looked up.
	summedHere = `(WITH RECURSIVE k (day) AS (SELECT CAST(?3 AS BIGINT)
		UNION ALL SELECT day + ` + day + ` FROM k WHERE day + ` + day + ` < ?4)
		SELECT d.* FROM k CROSS JOIN delivery_sums d WHERE d.day = k.day AND d.by_key = 'agent'
		AND d.name >= ?1 AND d.name < ?2 AND d.ordered = 0) d`

	// inProcess are the sessions s that no order names.
	inProcess = "NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id)"
)

// deliveries are what brokenDeliveries has of hours and terms: hours that are counted, and entries up to a number.
var deliveries = `SELECT u.agent_id, u.hour / ` + day + ` * ` + day + ` AS day, s.provider, s.product_no, s.type,
	0 AS ips, 0 AS days, 0 AS charged, CAST(-SUM(u.up + u.down) AS BIGINT) AS bytes, -COUNT(DISTINCT s.id) AS n
	FROM usage_hours u JOIN sessions s ON s.id = u.session_id WHERE u.counted = 1 AND u.hour >= {month}
	AND u.up + u.down > 0 AND s.type = 'dynamic' AND ` + inProcess + ` GROUP BY 1, 2, 3, 4, 5
	UNION ALL SELECT e.agent_id, e.at / ` + day + ` * ` + day + `, s.provider, s.product_no, s.type, s.quantity, s.days,
	e.counter, 0, -1 FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
	WHERE e.account = 'revenue' AND e.type = 'charge' AND e.at >= {month} AND e.seq <= {mark}
	AND s.type = 'static' AND ` + inProcess

// openDays are the days of agents of which an hour is not summed as it is, or got more since.
const openDays = "SELECT DISTINCT agent_id, hour / " + day + " * " + day +
	" FROM agent_hours WHERE up + down <> delivered"

// brokenDeliveries is the text of deliveredHere in a scope. More than an hour has is never summed.
var brokenDeliveries = `SELECT x.agent_id, 'day ' || x.day / ` + day + ` || ', ' || x.provider || ' ' || x.product_no ||
	': ' || SUM(x.bytes) || ' bytes and ' || SUM(x.n) || ' too many' FROM (SELECT d.name AS agent_id, d.day, d.provider,
	d.product_no, d.type, d.ips, d.days, d.charged, d.bytes, d.n FROM ` +
	strings.NewReplacer("?3", "{from}", "?4", "{to}").Replace(summedHere) + `
	UNION ALL ` + deliveries + `) x
	WHERE x.type <> 'dynamic' OR (x.agent_id, x.day) NOT IN (` + openDays + `)
	GROUP BY x.agent_id, x.day, x.provider, x.product_no, x.type, x.ips, x.days, x.charged
	HAVING SUM(x.bytes) <> 0 OR SUM(x.n) <> 0
	UNION ALL SELECT agent_id, 'hour ' || hour || ': ' || delivered || ' of ' || (up + down) || ' bytes'
	FROM agent_hours WHERE delivered > up + down OR delivered < 0`

// summedRules are those of what is summed of days by agent.
var summedRules = []rule{{deliveredHere, brokenDeliveries}}

// findDeliveries compares the sums of days since a month with orders, and what was delivered in process by its keys.
func findDeliveries(
	ctx context.Context, conn engine.Conn, of KeptDays, month int64,
) (faults []ports.Fault, err error) {
	for i, r := range []rule{{orderSums, differingOrders}, {deliverySums, differingDeliveries}} {
		f := ports.Fault{Rule: r.name}
		query := fmt.Sprintf("%s LIMIT %d", r.broken, maxFaults)
		args := []any{of.From, of.To, month}[:2+i]
		err = conn.Rows(ctx, query, args, func(row engine.Row) error {
			var at int64
			err := row.Scan(&at, &f.Detail)
			f.Where = dayOf(at)
			faults = append(faults, f)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("verify that %s: %w", r.name, err)
		}
	}
	return faults, nil
}

// delivery is what is counted together of what was delivered in process to an agent.
type delivery struct {
	agent                   string
	day                     int64
	provider, product, kind string
}

// delivered is how much it was: bytes of a number of sessions.
type delivered struct{ bytes, n int64 }

// usedDay is what a session used on a day.
type usedDay struct{ day, bytes int64 }

// addDay adds an hour to what a session used on its day.
func (x *sold) addDay(hour, bytes int64) {
	of := hour - hour%dayMicros
	if bytes <= 0 {
		return
	}
	if x.first.bytes == 0 || x.first.day == of {
		x.first.day, x.first.bytes = of, x.first.bytes+bytes
		return
	}
	for i := range x.later {
		if x.later[i].day == of {
			x.later[i].bytes += bytes
			return
		}
	}
	x.later = append(x.later, usedDay{of, bytes})
}

// deliver adds what a session was delivered in process.
func (s *survey) deliver(x *surveyed, e *sold) {
	switch {
	case x.ordered == 1:
		return
	case x.kind != "dynamic": // its terms are charges, which are not kept by session
		s.terms = true
		return
	}
	for i := -1; i < len(e.later); i++ {
		u := e.first
		if i >= 0 {
			u = e.later[i]
		}
		if u.bytes > 0 {
			k := delivery{x.agent, u.day, x.provider, x.product, x.kind}
			s.delivered[k] = delivered{s.delivered[k].bytes + u.bytes, s.delivered[k].n + 1}
		}
	}
}

// agentDay is a day of an agent.
type agentDay struct {
	agent string
	day   int64
}

// readDeliveries compares what was delivered in process with what is summed of it, but for days that readCounts found
// to be open. It has doubted the rule where more is summed of an hour than it has.
func (s *survey) readDeliveries(ctx context.Context, conn engine.Conn, r reading) error {
	doubt := s.doubt[deliveredHere] || s.mixed || s.terms
	if s.doubt[deliveredHere] = doubt; doubt {
		return nil
	}
	var k delivery
	var d delivered
	var ips, days, charged int64
	into := []any{&k.agent, &k.day, &k.provider, &k.product, &k.kind, &ips, &days, &charged, &d.bytes, &d.n}
	err := conn.Rows(ctx, `SELECT d.name, d.day, d.provider, d.product_no, d.type, d.ips, d.days, d.charged, d.bytes, d.n
		FROM `+summedHere, []any{r.from, r.to, r.days.From, r.days.To}, func(row engine.Row) error {
		err := row.Scan(into...)
		switch {
		case s.open[agentDay{k.agent, k.day}] && k.kind == "dynamic":
		case s.delivered[k] == d && ips == 0 && days == 0 && charged == 0:
			delete(s.delivered, k)
		default:
			s.doubt[deliveredHere] = true
		}
		return err
	})
	for k := range s.delivered {
		s.doubt[deliveredHere] = s.doubt[deliveredHere] || !s.open[agentDay{k.agent, k.day}]
	}
	return work.Wrap("survey what is summed of deliveries", err)
}

// summedDays returns the days of deliveries that are in no month sealed before a time, none of which are sealed without
// one, and up to which number entries are summed in them.
func summedDays(conn engine.Conn, month int64) (days KeptDays, entries int64, err error) {
	var text []byte
	err = conn.Row(`SELECT COALESCE(MIN(day), 0), COALESCE(MAX(day), 0), (SELECT value FROM service_values
		WHERE name = '`+MarginEntries+`') FROM delivery_sums WHERE by_key = 'agent'`, nil).Scan(&days.From, &days.To, &text)
	var of SummedDays
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &of)
	}
	days.From, days.To = max(days.From, month), days.To+dayMicros
	return days, of.Mark, work.Wrap("read which days are summed", err)
}
