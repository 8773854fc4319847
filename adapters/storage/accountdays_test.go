package storage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// manyEntries gives an account 2,000 charges, and recharges, of the five days before now. Each takes 3 minutes of them.
func manyEntries(t *testing.T, st *storage.Store) (n int) {
	t.Helper()
	const many = 2000
	addAgent(t, st, "agt_1", 0)
	execAll(t, st, fmt.Sprintf(`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter,
		ref, session_id, order_id, description, at, balance_after)
		WITH RECURSIVE k (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM k WHERE n < %d)
		SELECT 'txn_' || n, 'agt_1', n + 1, CASE n %% 7 WHEN 0 THEN 'recharge' WHEN 1 THEN 'hold' ELSE 'charge' END, 0,
		CASE n %% 7 WHEN 0 THEN 100 + n ELSE 0 END, 0, CASE WHEN n %% 7 > 1 THEN -n ELSE 0 END,
		CASE n %% 7 WHEN 0 THEN 'usdt_clearing' WHEN 1 THEN '' ELSE 'revenue' END,
		CASE n %% 7 WHEN 0 THEN -100 - n WHEN 1 THEN 0 ELSE n END, 'ref:' || n, '', '', '', %d - (%[1]d - n) * 180000000, 0 FROM k`,
		many, now.UnixMicro()))
	return many
}

// accountSums sums the entries themselves.
func accountSums(t *testing.T, st *storage.Store, from, to time.Time) (
	accounts map[billing.Account]domain.Money, received map[time.Time]domain.Money,
) {
	t.Helper()
	rows, err := st.Writer().QueryContext(t.Context(), fmt.Sprintf(`SELECT account, counter, at FROM ledger_entries
		WHERE account <> '' AND at >= %d AND at < %d`, from.UnixMicro(), to.UnixMicro()))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	accounts, received = map[billing.Account]domain.Money{}, map[time.Time]domain.Money{}
	for rows.Next() {
		var account billing.Account
		var counter domain.Money
		var at int64
		if err := rows.Scan(&account, &counter, &at); err != nil {
			t.Fatal(err)
		}
		accounts[account] += counter
		if account == billing.USDT {
			received[billing.Day(time.UnixMicro(at))] -= counter
		}
	}
	return accounts, received
}

func TestSumsOfAccountsAreThoseOfTheEntries(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		manyEntries(t, st)
		today := billing.Day(now)
		later := st.Later()
		expect := func(when string) {
			t.Helper()
			for _, c := range []struct{ from, to time.Time }{
				{today.AddDate(0, 0, -30), now}, {today.AddDate(0, 0, -2), today.AddDate(0, 0, 1)}, {today.AddDate(0, 0, -2), today},
				{now.Add(-50 * time.Hour), now.Add(-2 * time.Hour)}, {today.Add(-20 * time.Hour), today.Add(-4 * time.Hour)},
				{today.Add(-20 * time.Hour), today.Add(-20*time.Hour + 1)}, {now.Add(time.Hour), now.Add(2 * time.Hour)},
			} {
				accounts, received := accountSums(t, st, c.from, c.to)
				err := st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					got, err := tx.Overview().Accounts(ctx, c.from, c.to)
					byDay, errDays := tx.Overview().Received(ctx, c.from, c.to)
					zero := func(_ billing.Account, m domain.Money) bool { return m == 0 }
					maps.DeleteFunc(got, zero)
					maps.DeleteFunc(accounts, zero)
					maps.DeleteFunc(byDay, func(_ time.Time, m domain.Money) bool { return m == 0 })
					if !maps.Equal(got, accounts) || !maps.Equal(byDay, received) {
						t.Errorf("%s, from %s to %s: %v and %v, not %v and %v", when, c.from, c.to, got, byDay, accounts, received)
					}
					return errors.Join(err, errDays)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		summed := func() (n string) {
			t.Helper()
			row := st.Writer().QueryRowContext(t.Context(), "SELECT COALESCE(CAST(SUM(ABS(counter)) AS BIGINT), 0) FROM account_days")
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		expect("before anything is summed")
		sumUp(t, st)
		sumUp(t, st)
		if n := summed(); (n == "0") != (st.Pool() != nil) {
			t.Errorf("at once %s is summed", n)
		}
		expect("after it was looked for once")
		for range 2 {
			later(storage.SumDaysAfter)
			sumUp(t, st)
		}
		all := summed()
		if all == "0" {
			t.Error("nothing is summed")
		}
		expect("once all is summed")
		execAll(t, st, `INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account,
			counter, ref, session_id, order_id, description, at, balance_after)
			SELECT id || 'x', agent_id, ord + 5000, type, trial, own, held_trial, held_own, account, counter, ref || 'x', session_id,
			order_id, description, at, balance_after FROM ledger_entries WHERE ord % 90 = 0`)
		expect("with entries behind the sums")
		for range 2 {
			later(storage.SumDaysAfter)
			sumUp(t, st)
		}
		if summed() == all {
			t.Error("what is new is not summed")
		}
		expect("once it is summed too")
	})
}

// onEntries matches how many entries PostgreSQL read without a name.
var onEntries = regexp.MustCompile(`on ledger_entries \(actual rows=(\d+) loops=`)

// What the operator's pages and the report of margins sum of months are rows of days, and the entries behind them.
func TestSumsOfAccountsReadFewEntries(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		many := manyEntries(t, st)
		later := st.Later()
		for range 3 {
			sumUp(t, st)
			later(storage.SumDaysAfter)
		}
		analyze(t, st)
		today := billing.Day(now)
		from, to := today.AddDate(0, 0, -30), today.AddDate(0, 0, 1)
		plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Overview().Accounts(ctx, from, to)
			_, errDays := tx.Overview().Received(ctx, from, to)
			return errors.Join(err, errDays)
		})
		all, read := strings.Join(plans, "\n\n"), 0
		for _, m := range onEntries.FindAllStringSubmatch(all, -1) {
			rows, _ := strconv.Atoi(m[1])
			read += rows
		}
		for _, m := range removed.FindAllStringSubmatch(all, -1) {
			rows, _ := strconv.Atoi(m[1])
			read += rows
		}
		if st.Pool() == nil && strings.Count(all, "SEARCH ledger_entries USING INTEGER PRIMARY KEY (rowid>?)") != 2 {
			read = many
		}
		if err != nil || read > 10 || !strings.Contains(all, "ledger_entries") {
			t.Errorf("%d entries are read of days that are summed, %v:\n%s", read, err, all)
		}
	})
}

// The proof compares the sums of days with the entries.
func TestVerifySeesChangedDays(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		later := st.Later()
		for range 3 {
			sumUp(t, st)
			later(storage.SumDaysAfter)
		}
		verify(t, st)
		broken := func(statement, rule string) {
			t.Helper()
			execAll(t, st, statement)
			faults, _, err := st.Verify(t.Context())
			if err != nil || !slices.ContainsFunc(faults, func(f ports.Fault) bool { return f.Rule == rule && f.Where != "" && f.Detail != "" }) {
				t.Errorf("%s: %v, %+v", statement, err, faults)
			}
		}
		sums := "the sums of the service's accounts by day are those of the entries"
		broken("UPDATE account_days SET counter = counter + 1 WHERE account = 'revenue'", sums)
		execAll(t, st, "UPDATE account_days SET counter = counter - 1 WHERE account = 'revenue'")
		verify(t, st)
		later(6 * 24 * time.Hour)
		sumUp(t, st)
		verify(t, st)
		broken("UPDATE margin_sums SET refunded = refunded + 1 WHERE by_key = 'agent'", "the margin that is summed of a day is of its entries")
		execAll(t, st, "UPDATE margin_sums SET refunded = refunded - 1 WHERE by_key = 'agent'")
		verify(t, st)
		broken("DELETE FROM account_days WHERE account = 'usdt_clearing'", sums)
	})
}

// What was delivered in process is surveyed with the hours: where that differs from the sums of the day, it is named.
func TestVerifySeesWhatWasDeliveredInProcess(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := usedBooks(t, open)
		later := st.Later()
		later(6 * 24 * time.Hour)
		sumUp(t, st)
		verify(t, st)
		for _, change := range []string{"bytes = bytes + 1", "n = n + 1", "day = day - 86400000000", "ips = 1", "charged = 1"} {
			execAll(t, st, "CREATE TABLE was AS SELECT * FROM delivery_sums", "UPDATE delivery_sums SET "+change)
			faults, _, err := st.Verify(t.Context())
			if err != nil || len(faults) == 0 || faults[0].Rule != "the deliveries that are summed of an agent in process are of its hours and terms" {
				t.Errorf("%s: %v, %+v", change, err, faults)
			}
			execAll(t, st, "DELETE FROM delivery_sums", "INSERT INTO delivery_sums SELECT * FROM was", "DROP TABLE was")
		}
		verify(t, st)
	})
}

// A seller may charge more, or anything at all, long after an order was confirmed: the kept day is corrected with it.
func TestTheCostOfAnOldOrderIsCorrectedInItsDay(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := usedBooks(t, open)
		update(t, st, buy)
		later := st.Later()
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(changeOrder(ctx, tx, "ord_1", 0, now), changeOrder(ctx, tx, "ord_2", 700, now))
		})
		report := func() (lines [3]string) {
			for i, by := range []ports.MarginKey{ports.ByProvider, ports.ByAgent, ports.ByDay} {
				margins, deliveries := map[string]billing.Margin{}, []ports.Delivery(nil)
				view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
					from, to := now.Truncate(24*time.Hour), now.Add(48*time.Hour).Truncate(24*time.Hour)
					if margins, err = tx.Overview().Margins(ctx, from, to, by); err == nil {
						deliveries, err = tx.Overview().Deliveries(ctx, from, to, by)
					}
					return err
				})
				deliveries = slices.DeleteFunc(deliveries, func(d ports.Delivery) bool { return d.Count == 0 })
				lines[i] = fmt.Sprintf("%+v %+v", margins, deliveries)
			}
			return lines
		}
		change := func(id string, cost domain.Money) {
			t.Helper()
			update(t, st, func(ctx context.Context, tx ports.Tx) error { return changeOrder(ctx, tx, id, cost, now) })
			verify(t, st)
		}
		later(4 * 24 * time.Hour)
		change("ord_2", 800) // its day is not kept yet
		later(2 * 24 * time.Hour)
		sumUp(t, st)
		verify(t, st)
		for _, c := range []struct {
			id   string
			cost domain.Money
		}{{"ord_2", 900}, {"ord_1", 500}, {"ord_2", 0}, {"ord_1", 0}, {"ord_1", 1}} {
			change(c.id, c.cost)
			kept := report()
			anew := "'order-days', 'margin-entries'"
			execAll(t, st, "CREATE TABLE was AS SELECT * FROM service_values WHERE name IN ("+anew+")",
				"CREATE TABLE margins AS SELECT * FROM margin_sums", "CREATE TABLE deliveries AS SELECT * FROM delivery_sums",
				"CREATE TABLE hours AS SELECT * FROM agent_hours", "UPDATE agent_hours SET delivered = 0",
				"DELETE FROM service_values WHERE name IN ("+anew+")", "DELETE FROM margin_sums", "DELETE FROM delivery_sums")
			if summed := report(); kept != summed {
				t.Errorf("%s costs %d:\nkept   %s\nsummed %s", c.id, c.cost, kept, summed)
			}
			execAll(t, st, "INSERT INTO service_values SELECT * FROM was", "INSERT INTO margin_sums SELECT * FROM margins",
				"INSERT INTO delivery_sums SELECT * FROM deliveries", "DELETE FROM agent_hours",
				"INSERT INTO agent_hours SELECT * FROM hours", "DROP TABLE was", "DROP TABLE margins", "DROP TABLE deliveries",
				"DROP TABLE hours")
		}
	})
}

// changeOrder confirms an order for a cost, or changes its cost.
func changeOrder(ctx context.Context, tx ports.Tx, id string, cost domain.Money, at time.Time) error {
	o, err := tx.Orders().Get(ctx, id)
	if err != nil {
		return err
	}
	o.Cost, o.SentAt, o.DecidedAt = cost, at, at
	return tx.Orders().Put(ctx, o)
}

// A day that is summed while the cost of one of its orders changes is summed again.
func TestADayIsSummedAgainIfACostChangesMeanwhile(t *testing.T) {
	t.Parallel()
	st := usedBooks(t, func(t testing.TB) *storage.Store { return openPostgres(t) })
	update(t, st, buy)
	later := st.Later()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(changeOrder(ctx, tx, "ord_1", 600, now), changeOrder(ctx, tx, "ord_2", 700, now))
	})
	later(6 * 24 * time.Hour)
	kept := make(chan error, 1)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := changeOrder(ctx, tx, "ord_2", 800, now); err != nil {
			return err
		}
		go func() { kept <- st.SumDays(context.WithoutCancel(ctx)) }()
		eventually(t, "the day is summed, and its keeper waits", func() bool {
			var waits int
			err := st.Pool().QueryRow(ctx, `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
				WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`).Scan(&waits)
			return err == nil && waits > 0
		})
		return nil
	})
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	sumUp(t, st)
	verify(t, st)
}

// What an hour gets once it is counted is delivered with it, and once: the day is summed anew.
func TestWhatAnHourGetsLateIsDelivered(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := usedBooks(t, open)
		later := st.Later()
		delivered := func() (bytes int64, n int) {
			view(t, st, func(ctx context.Context, tx ports.Tx) error {
				list, err := tx.Overview().Deliveries(ctx, billing.Day(now), billing.Day(now).AddDate(0, 0, 1), ports.ByAgent)
				for _, d := range list {
					bytes, n = bytes+d.Bytes, n+d.Count
				}
				return err
			})
			return bytes, n
		}
		was, n := delivered()
		later(3 * time.Hour)
		for range 2 {
			sumUp(t, st)
			if bytes, sessions := delivered(); bytes != was || sessions != n || n == 0 {
				t.Errorf("%d bytes of %d sessions are delivered once the hour is summed, %d of %d before", bytes, sessions, was, n)
			}
		}
		const more = 40
		execAll(t, st, fmt.Sprintf("UPDATE usage_hours SET up = up + %d WHERE session_id <> ''", more),
			fmt.Sprintf("UPDATE sessions SET up = up + %d, leased = leased - %[1]d WHERE up > 0", more),
			fmt.Sprintf("UPDATE leases SET up = up + %d", more), fmt.Sprintf("UPDATE counters SET bytes = bytes + %d WHERE bytes > 0", more))
		for range 2 {
			sumUp(t, st)
			if bytes, sessions := delivered(); bytes != was+more || sessions != n {
				t.Errorf("%d bytes of %d sessions are delivered, not %d of %d", bytes, sessions, was+more, n)
			}
		}
		for _, f := range faultsOf(t, st) {
			if strings.Contains(f.Rule, "deliver") {
				t.Errorf("%+v", f)
			}
		}
		execAll(t, st, "UPDATE agent_hours SET delivered = delivered + 1")
		if !slices.ContainsFunc(faultsOf(t, st), func(f ports.Fault) bool { return strings.Contains(f.Rule, "deliveries that are summed") }) {
			t.Error("more is summed of an hour than it has, and verify finds nothing")
		}
	})
}

func faultsOf(t *testing.T, st *storage.Store) []ports.Fault {
	t.Helper()
	faults, _, err := st.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return faults
}
