package proof

import (
	"context"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// Rules of what is kept of days and follows from orders, hours and terms. ?1 and ?2 are from when and until when days
// are kept.
const (
	orderSums     = "what is kept of the costs of a day is of its orders"
	deliverySums  = "what is kept of the deliveries of a day is of its orders, and the same by each key"
	deliveredHere = "what is kept of the deliveries of an agent in process is of its hours and terms"
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
		' orders too much' FROM (SELECT day, by_key, name, cost, orders FROM margin_days
		WHERE day >= ?1 AND (cost <> 0 OR orders <> 0)
		UNION ALL SELECT ` + dayOfOrder + `, k.by_key, ` + keysOfOrder + `, -o.cost,
		CASE WHEN o.kind <> 'replacement' THEN -1 ELSE 0 END ` + keptOrders + `) x
		GROUP BY x.day, x.by_key, x.name HAVING SUM(x.cost) <> 0 OR SUM(x.orders) <> 0
		ORDER BY x.day, x.by_key, x.name`

	// What was delivered in process is compared with hours and terms agent by agent, and here by the other keys with that.
	differingDeliveries = `SELECT x.day, x.by_key || ' ' || x.name || ', ' || x.provider || ' ' || x.product_no || ': ' ||
		SUM(x.bytes) || ' bytes and ' || SUM(x.n) || ' too many'
		FROM (SELECT day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n FROM delivery_days
		WHERE day >= ?1 AND (ordered <> 0 OR by_key <> 'agent' OR day >= ?2)
		UNION ALL SELECT ` + dayOfOrder + `, k.by_key, ` + keysOfOrder + `, o.provider, COALESCE(s.product_no, ''), o.type,
		1, o.quantity, o.days, 0, -o.bytes, -1 ` + keptOrders + ` AND o.kind <> 'replacement' AND o.cost = 0
		UNION ALL SELECT d.day, k.by_key, CASE k.by_key WHEN 'provider' THEN d.provider ELSE d.product_no END, d.provider,
		d.product_no, d.type, d.ordered, d.ips, d.days, d.charged, -d.bytes, -d.n FROM delivery_days d
		CROSS JOIN (SELECT 'provider' AS by_key UNION ALL SELECT 'product') k
		WHERE d.by_key = 'agent' AND d.ordered = 0 AND d.day >= ?1 AND d.day < ?2) x
		GROUP BY x.day, x.by_key, x.name, x.provider, x.product_no, x.type, x.ordered, x.ips, x.days, x.charged
		HAVING SUM(x.bytes) <> 0 OR SUM(x.n) <> 0 ORDER BY x.day, x.by_key, x.name`

	// keptHere are the days ?3 until before ?4 of a range of agents. Each day is looked up.
	keptHere = `(WITH RECURSIVE k (day) AS (SELECT CAST(?3 AS BIGINT)
		UNION ALL SELECT day + ` + day + ` FROM k WHERE day + ` + day + ` < ?4)
		SELECT d.* FROM k CROSS JOIN delivery_days d WHERE d.day = k.day AND d.by_key = 'agent'
		AND d.name >= ?1 AND d.name < ?2 AND d.ordered = 0) d`

	// inProcess are the sessions s that no order names.
	inProcess = "NOT EXISTS (SELECT 1 FROM upstream_orders o WHERE o.session_id = s.id)"
)

// deliveries are what brokenDeliveries has of hours and terms: an hour counts if the agent was charged on its day, or
// within four days after it.
var deliveries = `SELECT h.agent_id, h.day, h.provider, h.product_no, h.type, 0 AS ips, 0 AS days, 0 AS charged,
	-h.bytes AS bytes, -h.n AS n
	FROM (SELECT u.agent_id, u.hour / ` + day + ` * ` + day + ` AS day, s.provider, s.product_no, s.type,
	CAST(SUM(u.up + u.down) AS BIGINT) AS bytes, COUNT(DISTINCT s.id) AS n
	FROM usage_hours u JOIN sessions s ON s.id = u.session_id WHERE u.hour >= {from} AND u.hour < {to}
	AND u.up + u.down > 0 AND s.type = 'dynamic' AND ` + inProcess + ` GROUP BY 1, 2, 3, 4, 5) h
	JOIN (SELECT DISTINCT agent_id, at / ` + day + ` * ` + day + ` AS day FROM ledger_entries
	WHERE account = 'revenue' AND at >= {from}) c ON c.agent_id = h.agent_id
	AND c.day BETWEEN h.day AND h.day + 4 * ` + day + `
	GROUP BY h.agent_id, h.day, h.provider, h.product_no, h.type, h.bytes, h.n
	UNION ALL SELECT e.agent_id, e.at / ` + day + ` * ` + day + `, s.provider, s.product_no, s.type, s.quantity, s.days,
	e.counter, 0, -1 FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
	WHERE e.account = 'revenue' AND e.type = 'charge' AND e.at >= {from} AND e.at < {to}
	AND s.type = 'static' AND ` + inProcess

// brokenDeliveries is the text of deliveredHere in a scope, where days are kept from {from} to {to}.
var brokenDeliveries = `SELECT x.agent_id, 'day ' || x.day / ` + day + ` || ', ' || x.provider || ' ' || x.product_no ||
	': ' || SUM(x.bytes) || ' bytes and ' || SUM(x.n) || ' too many' FROM (SELECT d.name AS agent_id, d.day, d.provider,
	d.product_no, d.type, d.ips, d.days, d.charged, d.bytes, d.n FROM ` +
	strings.NewReplacer("?3", "{from}", "?4", "{to}").Replace(keptHere) + `
	UNION ALL ` + deliveries + `) x
	GROUP BY x.agent_id, x.day, x.provider, x.product_no, x.type, x.ips, x.days, x.charged
	HAVING SUM(x.bytes) <> 0 OR SUM(x.n) <> 0`

// keptRules are those of what is kept of days by agent.
var keptRules = []rule{{deliveredHere, brokenDeliveries}}

// findDeliveries compares the kept days with orders, and what was delivered in process by its keys.
func findDeliveries(ctx context.Context, conn engine.Conn, kept KeptDays) (faults []ports.Fault, err error) {
	for _, r := range []rule{{orderSums, differingOrders}, {deliverySums, differingDeliveries}} {
		f := ports.Fault{Rule: r.name}
		query := fmt.Sprintf("%s LIMIT %d", r.broken, maxFaults)
		err = conn.Rows(ctx, query, []any{kept.From, kept.To}, func(row engine.Row) error {
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

// addCharge notes on which days an agent was charged.
func (s *survey) addCharge(e *entry) {
	k := hourOf{agent: e.AgentID, hour: e.At - e.At%dayMicros}
	if e.Account == string(billing.Revenue) && k != s.lastCharge {
		s.charges[k] = struct{}{}
		s.lastCharge = k
	}
}

// deliver adds what a session was delivered in process.
func (s *survey) deliver(x *surveyed, e *sold) {
	switch {
	case x.ordered == 1 || s.kept.From >= s.kept.To:
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
		if u.bytes == 0 || u.day < s.kept.From || u.day >= s.kept.To {
			continue
		}
		for d := range int64(5) {
			if _, ok := s.charges[hourOf{agent: x.agent, hour: u.day + d*dayMicros}]; ok {
				k := delivery{x.agent, u.day, x.provider, x.product, x.kind}
				s.delivered[k] = delivered{s.delivered[k].bytes + u.bytes, s.delivered[k].n + 1}
				break
			}
		}
	}
}

// readDeliveries compares what was delivered in process with what is kept of it.
func (s *survey) readDeliveries(ctx context.Context, conn engine.Conn, r reading) error {
	if s.doubt[deliveredHere] = s.mixed || s.terms; s.doubt[deliveredHere] || s.kept.From >= s.kept.To {
		return nil
	}
	var k delivery
	var d delivered
	var ips, days, charged int64
	into := []any{&k.agent, &k.day, &k.provider, &k.product, &k.kind, &ips, &days, &charged, &d.bytes, &d.n}
	err := conn.Rows(ctx, `SELECT d.name, d.day, d.provider, d.product_no, d.type, d.ips, d.days, d.charged, d.bytes, d.n
		FROM `+keptHere, []any{r.from, r.to, s.kept.From, s.kept.To}, func(row engine.Row) error {
		err := row.Scan(into...)
		if s.delivered[k] == d && ips == 0 && days == 0 && charged == 0 {
			delete(s.delivered, k)
		} else {
			s.doubt[deliveredHere] = true
		}
		return err
	})
	s.doubt[deliveredHere] = s.doubt[deliveredHere] || len(s.delivered) > 0
	return work.Wrap("survey what is kept of deliveries", err)
}

// keptOf returns the kept days that are in no month sealed before a time, none of which are sealed without one.
func keptOf(conn engine.Conn, month int64) (kept KeptDays, err error) {
	err = ValueOf(conn, MarginDays, &kept)
	kept.From = max(kept.From, month)
	return kept, work.Wrap("read which days are kept", err)
}
