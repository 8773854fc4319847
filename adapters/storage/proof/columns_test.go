package proof_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
)

// moneyTables are the tables of which each number is money, a count, or what these follow from.
var moneyTables = []string{"wallets", "ledger_entries", "sessions", "session_topups", "usage_hours", "agent_hours", "counters",
	"session_counts", "leases", "workers", "session_archive", "key_wallets", "trial_grants", "recharge_keys", "recharge_orders",
	"recharge_transfers", "recharge_aside", "upstream_orders", "replacements", "ledger_proofs", "ledger_counted", "ledger_months",
	"ledger_month_sessions", "ledger_seals", "ledger_openings", "margin_sums", "delivery_sums", "account_days"}

// These are columns that no rule compares, by why they follow from nothing. Most moments are compared to the day or the hour
// that money depends on, and not to the microsecond by which the test moves them.
var unproved = map[string]string{
	"the agent's own setting": `wallets.budget_daily wallets.budget_total wallets.budget_paused sessions.rotation_interval
		key_wallets.budget_total key_wallets.budget_daily key_wallets.per_purchase key_wallets.max_sessions key_wallets.own
		workers.ttl workers.strict workers.uniq workers.max_bytes`,
	"it is over in any case once its end is past":                     "wallets.trial_expired",
	"fair use of a static session, which the configuration has alone": "sessions.bytes",
	"a moment, of which a rule compares the day or the hour, or none": `sessions.created_at sessions.rotated_at
		sessions.rotation_next_at sessions.activated_at sessions.expires_at sessions.ended_at sessions.usage_at sessions.settle_at
		session_topups.at leases.renewed_at trial_grants.day recharge_orders.created_at recharge_orders.expires_at
		recharge_transfers.first_seen recharge_aside.set_at recharge_aside.tried_at upstream_orders.planned_at
		upstream_orders.before_at upstream_orders.sent_at upstream_orders.decided_at upstream_orders.next_at
		upstream_orders.frozen_at upstream_orders.lost_at upstream_orders.closed_at upstream_orders.expires_at
		upstream_orders.cut_at upstream_orders.counter_fell_at workers.assigned_at workers.created_at workers.error_at
		workers.used_at replacements.at replacements.decided_at replacements.ends_at session_archive.at ledger_seals.month`,
	"a number by which a row is found or listed": `sessions.ord recharge_orders.seq recharge_transfers.seq
		upstream_orders.seq workers.seq workers.session replacements.idx ledger_month_sessions.ord`,
	"no money is of it, and nothing else counts it": `sessions.password_no sessions.cuts sessions.skipped leases.connections
		workers.turn workers.lost workers.changeable workers.rotations recharge_aside.tries recharge_keys.kept`,
	"reports are folded and not kept":                                     "counters.reported counters.scored counters.good",
	"a session moves more than its workers, and no entry is a worker's":   "workers.up workers.down",
	"an index may be left out, as after a restore":                        "recharge_keys.next",
	"the chain has it alone, and it is read there again before it counts": "recharge_transfers.block recharge_aside.amount recharge_aside.block",
	"what an open order is for is nowhere else":                           "recharge_orders.amount",
	"the seller, or the configuration of then, has it alone":              "upstream_orders.max_cost upstream_orders.before_amount upstream_orders.before_known",
}

// Every number of the tables of money is changed by one, in each of some rows, and the proof of everything or that of what
// is in no sealed month has a fault, or the database refuses it, or it is named why it follows from nothing. PostgreSQL
// refuses more, and takes longer: there fewer rows of the columns are changed that must be proved.
func TestEveryColumnOfMoneyIsProved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, h *history, copied func(*testing.T) *storage.Store) {
		why := map[string]bool{}
		for _, list := range unproved {
			for _, name := range strings.Fields(list) {
				why[name] = false
			}
		}
		st := copied(t)
		b := breaker{t: t, postgres: h.Postgres(), conn: unchecked(t, h, st)}
		right := func() bool {
			whole, _, err := st.Verify(t.Context())
			apptest.OK(t, err)
			ofGuards := func(f ports.Fault) bool { return f.Rule == guards }
			if slices.ContainsFunc(whole, func(f ports.Fault) bool { return !ofGuards(f) }) {
				return false
			}
			open, _, _, err := st.VerifyOpen(t.Context())
			apptest.OK(t, err)
			return len(slices.DeleteFunc(open, ofGuards)) == 0
		}
		if !right() {
			t.Fatal("there are faults before anything is changed")
		}
		proved := 0
		for _, table := range moneyTables {
			rows := 0
			apptest.OK(t, b.conn.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&rows))
			for _, column := range b.columns(table) {
				name := table + "." + column
				_, named := why[name]
				most := min(rows, campaign.Rounds(3, 20))
				if named { // one of them is missed
					most = min(rows, campaign.Rounds(5, 20))
				}
				if h.Postgres() {
					most = min(rows, campaign.Rounds(1, 10))
				}
				missed := 0
				for n := 0; n < most && !(named && h.Postgres()); n++ {
					refused, undo := b.raise(table, column, (n*rows+rows/2)/most)
					switch {
					case refused:
					case right():
						missed++
					default:
						proved++
					}
					undo()
				}
				if missed > 0 && !named {
					t.Errorf("%s is one more in %d of %d rows, and no rule has a fault", name, missed, most)
				}
				why[name] = why[name] || named && (missed > 0 || rows == 0)
			}
		}
		if proved < 100 {
			t.Errorf("%d changes are proved: the others did nothing", proved)
		}
		for name, needed := range why {
			if slices.Contains(strings.Fields(strings.Join(slices.Collect(maps.Values(unproved)), " ")), name) && !needed && !h.Postgres() {
				t.Errorf("%s is proved, or is no column", name)
			}
		}
	})
}

// statements is a connection, or the pool of SQLite's only one that writes, which the program needs too.
type statements interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// unchecked returns a connection on which no trigger runs and no reference is checked.
func unchecked(t *testing.T, h *history, st *storage.Store) (conn statements) {
	t.Helper()
	list := []string{"SET session_replication_role = replica"}
	if h.Postgres() {
		own, err := st.Writer().Conn(t.Context())
		apptest.OK(t, err)
		t.Cleanup(func() { _ = own.Close() })
		conn = own
	} else {
		off, _ := h.triggers(t, st)
		list = append(off, "PRAGMA ignore_check_constraints = on", "PRAGMA foreign_keys = off")
		conn = st.Writer()
	}
	for _, s := range list {
		_, err := conn.ExecContext(t.Context(), s)
		apptest.OK(t, err)
	}
	return conn
}

// breaker changes single numbers.
type breaker struct {
	t        *testing.T
	postgres bool
	conn     statements
}

// columns returns the columns of a table that are numbers.
func (b breaker) columns(table string) (names []string) {
	b.t.Helper()
	query := "SELECT name FROM pragma_table_info('" + table + "') WHERE type = 'INTEGER'"
	if b.postgres {
		query = `SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '` + table + `'
			AND data_type IN ('bigint', 'integer', 'smallint') ORDER BY ordinal_position`
	}
	rows, err := b.conn.QueryContext(b.t.Context(), query)
	apptest.OK(b.t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		apptest.OK(b.t, rows.Scan(&name))
		names = append(names, name)
	}
	if len(names) == 0 {
		b.t.Errorf("%s has no numbers", table)
	}
	return names
}

// raise makes a number one more in a row of a table, or reports that the database refuses it. undo takes it back.
func (b breaker) raise(table, column string, row int) (refused bool, undo func()) {
	b.t.Helper()
	exec := func(statement string, args ...any) {
		b.t.Helper()
		_, err := b.conn.ExecContext(b.t.Context(), fmt.Sprintf(statement, args...))
		apptest.OK(b.t, err)
	}
	key := "SELECT group_concat(name, ', ') FROM pragma_table_info('" + table + "') WHERE pk > 0"
	as := ""
	if b.postgres {
		key = `SELECT string_agg(a.attname, ', ') FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
			AND a.attnum = ANY (i.indkey) WHERE i.indisprimary AND i.indrelid = '` + table + `'::regclass`
		as = "OVERRIDING SYSTEM VALUE" // numbers that the database gives
	}
	var columns string
	apptest.OK(b.t, b.conn.QueryRowContext(b.t.Context(), key).Scan(&columns))
	exec("CREATE TEMP TABLE was AS SELECT * FROM %s", table)
	_, err := b.conn.ExecContext(b.t.Context(), fmt.Sprintf(`UPDATE %[1]s SET %[2]s = COALESCE(%[2]s, 0) + 1
		WHERE (%[3]s) IN (SELECT %[3]s FROM %[1]s ORDER BY %[3]s LIMIT 1 OFFSET %[4]d)`, table, column, columns, row))
	return err != nil, func() {
		b.t.Helper()
		if err == nil {
			exec("DELETE FROM %s", table)
			exec("INSERT INTO %s %s SELECT * FROM was", table, as)
		}
		exec("DROP TABLE was")
	}
}

// keys restricts a key, by which sessions are bought, and gives an address back for nothing.
func (h *history) keys(agent string) {
	ctx := h.T.Context()
	apptest.OK(h.T, h.DB.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.KeyWallets().Restrict(ctx, agent, "key_a", account.Limits{}, h.Clock.Now())
	}))
	for range 2 {
		d, err := h.Sessions.Create(ctx, sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Local),
			By: account.Spender{KeyID: "key_a"}})
		apptest.OK(h.T, err)
		h.name("of key", d.View.ID)
	}
	h.Exec(fmt.Sprintf(`INSERT INTO replacements SELECT 'rep_1', agent_id, id, provider, country, 0, '192.0.2.1', '', 'other', 'offered',
		'done', '', 0, 0, 0, %d, %[1]d, 0 FROM sessions WHERE id = '%s'`, h.Clock.Now().UnixMicro(), h.id("$live$")))
}
