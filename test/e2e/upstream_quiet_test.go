package e2e_test

import (
	"database/sql"
	"encoding/json"
	"slices"
	"time"
)

// settles waits until nothing is on its way, and compares what each seller has with
// what the service has recorded.
func (m *sellerService) settles(db *sql.DB, sellers []stall) {
	m.t.Helper()
	limit := 3 * time.Minute
	if *upstreamAll {
		limit = 25 * time.Minute
	}
	began := time.Now()
	within(m.t, limit, "quiet", func() bool {
		if !*upstreamAll {
			// The time to the next look grows with the age of an order, which the caller may have raised.
			// What is quiet stays so: the calls of sellers are limited.
			if _, err := db.Exec(`UPDATE upstream_orders SET next_at = planned_at WHERE next_at > 0 AND closed_at = 0
				AND (status = 'unknown' OR status = 'confirmed' AND (state <> 'live' OR
					session_id IN (SELECT id FROM sessions WHERE status <> 'active')))`); err != nil {
				m.t.Fatal(err)
			}
		}
		return m.number(db, `SELECT count(*) FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
			WHERE o.status IN ('planned', 'sent', 'unknown') OR o.status = 'confirmed' AND o.closed_at = 0 AND (s.status <> 'active' OR o.state <> 'live')`)+
			m.number(db, `SELECT count(*) FROM sessions WHERE status = 'creating'`) == 0
	})
	m.t.Logf("quiet after %v, with %d orders: %d confirmed, %d refused", time.Since(began).Round(time.Second), m.number(db, `SELECT count(*) FROM upstream_orders`),
		m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'confirmed'`), m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'refused'`))
	for _, s := range sellers {
		// What cannot be given up runs to its end: it is known, and closed.
		known := m.texts(db, `SELECT ref FROM upstream_orders WHERE kind = 'purchase' AND status = 'confirmed' AND provider = '`+s.provider+
			`' AND (closed_at = 0 OR reason = 'it runs to its end at the provider')`)
		sold := s.live()
		slices.Sort(sold)
		if !slices.Equal(sold, known) {
			lost := slices.DeleteFunc(slices.Clone(sold), func(ref string) bool { return slices.Contains(known, ref) })
			m.t.Errorf("%s has %d orders and %d are stored; unknown are %v", s.provider, len(sold), len(known), lost)
		}
		active := m.number(db, `SELECT count(*) FROM sessions WHERE status = 'active' AND provider = '`+s.provider+`'`)
		open := m.number(db, `SELECT count(*) FROM upstream_orders WHERE kind = 'purchase' AND status = 'confirmed' AND closed_at = 0 AND provider = '`+s.provider+`'`)
		if active != open {
			m.t.Errorf("%s: %d sessions are active with %d orders", s.provider, active, open)
		}
		m.t.Logf("%s: %d sales, %d live orders, %d active sessions", s.provider, s.server.Sales(), len(sold), active)
		if s.renewals == nil {
			continue
		}
		if made, known := s.renewals(), m.number(db, `SELECT count(*) FROM upstream_orders WHERE kind = 'renewal' AND status = 'confirmed' AND provider = '`+s.provider+`'`); made != known {
			m.t.Errorf("%s renewed %d times, we know of %d", s.provider, made, known)
		}
	}
}

// balances checks that the agents paid for what they have: 9 USD an address and a
// renewal, and 3 USD held for a GB.
func (m *sellerService) balances(db *sql.DB, keys []string) {
	m.t.Helper()
	paid := 9 * m.number(db, `SELECT count(*) FROM upstream_orders WHERE status = 'confirmed' AND type = 'static'`)
	held := m.number(db, `SELECT COALESCE(sum(o.bytes), 0) FROM upstream_orders o JOIN sessions s ON s.id = o.session_id
		WHERE o.status = 'confirmed' AND o.type = 'dynamic' AND s.status = 'active'`) * 3 / 1e6
	left := 0
	for _, key := range keys {
		var b struct{ Balance json.Number }
		m.must(200, "GET", "/billing/balance", key, "").into(m.t, &b)
		f, err := b.Balance.Float64()
		if err != nil {
			m.t.Fatal(err)
		}
		left += int(f*1000 + 0.5)
	}
	if want := len(keys)*1_000_000*1000 - paid*1000 - held; left != want {
		m.t.Errorf("the agents have %d thousandths of a dollar left, want %d: %d paid, %d thousandths held", left, want, paid, held)
	}
}

func (m *sellerService) number(db *sql.DB, query string) (n int) {
	m.t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

func (m *sellerService) texts(db *sql.DB, query string) (list []string) {
	m.t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			m.t.Fatal(err)
		}
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
