// Package margins sums by UTC day what agents paid and what sellers took, and reads the reports of all agents from it.
// Calls of agents write none of it: the leader sums what is new since it ran last, and a report adds what is newer.
package margins

import (
	"context"
	"encoding/json"
	"time"

	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
)

const (
	// stepEntries is how many numbers of entries a unit sums.
	stepEntries = 10_000
	// EntriesAfter is how old a number is before the entries up to it are summed on PostgreSQL, where they get their
	// numbers before they are committed: the server ends each statement, and a transaction without one, much sooner.
	EntriesAfter = time.Minute

	// DayMicros is a day as columns have it.
	DayMicros = 86_400_000_000
)

// Sums of entries of a day, whatever clock they are of.
const (
	sumAccounts = `INSERT INTO account_days (day, account, counter)
		SELECT at / 86400000000 * 86400000000, account, CAST(SUM(counter) AS BIGINT) FROM ledger_entries
		WHERE seq > ?1 AND seq <= ?2 AND account <> '' GROUP BY 1, 2
		ON CONFLICT (day, account) DO UPDATE SET counter = account_days.counter + excluded.counter`
	allKeys = "(SELECT 'provider' AS by_key UNION ALL SELECT 'product' UNION ALL SELECT 'agent') k"
	sumPaid = `INSERT INTO margin_sums (day, by_key, name, charged, refunded, trial, given, cost, orders)
		SELECT e.at / 86400000000 * 86400000000, k.by_key, CASE k.by_key WHEN 'provider' THEN COALESCE(s.provider, '')
		WHEN 'product' THEN COALESCE(s.product_no, '') ELSE e.agent_id END, ` + paid + `, 0, 0
		FROM ledger_entries e CROSS JOIN ` + allKeys + ` LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.seq > ?1 AND e.seq <= ?2 AND e.account IN ('revenue', 'corrections') GROUP BY 1, 2, 3
		ON CONFLICT (day, by_key, name) DO UPDATE SET charged = margin_sums.charged + excluded.charged,
		refunded = margin_sums.refunded + excluded.refunded, trial = margin_sums.trial + excluded.trial,
		given = margin_sums.given + excluded.given`
	sumTerms = `INSERT INTO delivery_sums
		(day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n)
		SELECT e.at / 86400000000 * 86400000000, k.by_key, CASE k.by_key WHEN 'provider' THEN s.provider
		WHEN 'product' THEN s.product_no ELSE e.agent_id END, s.provider, s.product_no, s.type, 0, s.quantity, s.days,
		e.counter, 0, COUNT(*) FROM ledger_entries e CROSS JOIN ` + allKeys + ` JOIN sessions s ON s.id = e.session_id
		WHERE e.seq > ?1 AND e.seq <= ?2 AND ` + isTerm + ` GROUP BY 1, 2, 3, 4, 5, 6, 8, 9, 10 ` + addDelivery
	addDelivery = `ON CONFLICT (day, by_key, name, provider, product_no, type, ordered, ips, days, charged)
		DO UPDATE SET bytes = delivery_sums.bytes + excluded.bytes, n = delivery_sums.n + excluded.n`
	setValue = `INSERT INTO service_values (name, value) VALUES (?1, ?2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`
)

// Entries are sums of all entries up to a number that is kept under a name.
type Entries struct {
	name string
	sums []string
}

// AllEntries are the sums of entries.
var AllEntries = []Entries{{proof.AccountDays, []string{sumAccounts}},
	{proof.MarginEntries, []string{sumPaid, sumTerms}}}

// Sum sums the next entries, and reports whether there are more.
func (e Entries) Sum(_ context.Context, u *work.Unit) (more bool, err error) {
	u.Serialize("sum up")
	d, err := upTo(u, e.name)
	if err != nil {
		return false, err
	}
	var last int64
	if err := u.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries").Scan(&last); err != nil {
		return false, work.Wrap("read the number of the last entry", err)
	}
	was, bound, now := d, last, u.Database.Now()
	if u.Conn.Concurrent() {
		if (d.Bound < last || d.Next < last) && now.Sub(d.At).Abs() >= EntriesAfter {
			d.Bound, d.Next, d.At = d.Next, last, now
		}
		bound = min(d.Bound, last)
	}
	if to := min(bound, d.Mark+stepEntries); to > d.Mark {
		for _, sum := range e.sums {
			if err := u.Later("sum entries by day", sum, d.Mark, to); err != nil {
				return false, err
			}
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
	return d.Mark < bound, u.Later("keep up to which entry days are summed", setValue, e.name, text)
}

func upTo(u *work.Unit, name string) (d proof.SummedDays, err error) {
	err = proof.ValueOf(u.Conn, name, &d)
	return d, work.Wrap("read up to which entry days are summed", err)
}
