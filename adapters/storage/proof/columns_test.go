package proof_test

import (
	"context"
	"database/sql"
	"fmt"
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
// is in no sealed month has a fault, or the database refuses it, or it is named why it follows from nothing.
func TestEveryColumnOfMoneyIsProved(t *testing.T) {
	t.Parallel()
	why := map[string]bool{}
	for _, list := range unproved {
		for _, name := range strings.Fields(list) {
			why[name] = false
		}
	}
	onEach(t, func(t *testing.T, h *history, copied func(*testing.T) *storage.Store) {
		if h.Postgres() {
			return // the rules are the same, and each is broken there too
		}
		st := copied(t)
		w := st.Writer()
		off, _ := h.triggers(t, st)
		for _, s := range append(off, "PRAGMA ignore_check_constraints = on", "PRAGMA foreign_keys = off") {
			_, err := w.ExecContext(t.Context(), s)
			apptest.OK(t, err)
		}
		right := func() (ids []string) {
			whole, _, err := st.Verify(t.Context())
			apptest.OK(t, err)
			open, _, _, err := st.VerifyOpen(t.Context())
			apptest.OK(t, err)
			for _, f := range append(whole, open...) {
				if f.Rule != guards {
					ids = append(ids, f.Rule)
				}
			}
			return ids
		}
		if faults := right(); len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, table := range moneyTables {
			rows := 0
			apptest.OK(t, w.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&rows))
			for _, column := range columnsOf(t, w, table) {
				missed, most := 0, min(rows, campaign.Rounds(5, 20))
				for n := range most {
					refused, undo := raise(t, w, table, column, n*rows/most)
					if !refused && len(right()) == 0 {
						missed++
					}
					undo()
				}
				name := table + "." + column
				if _, named := why[name]; missed > 0 && !named {
					t.Errorf("%s is one more in %d of %d rows, and no rule has a fault", name, missed, most)
				} else if missed > 0 || named && rows == 0 {
					why[name] = true
				}
			}
		}
		for name, needed := range why {
			if !needed {
				t.Errorf("%s is proved, or is no column", name)
			}
		}
	})
}

// columnsOf returns the columns of a table that are numbers.
func columnsOf(t *testing.T, w *sql.DB, table string) (names []string) {
	t.Helper()
	rows, err := w.QueryContext(t.Context(), "SELECT name FROM pragma_table_info('"+table+"') WHERE type = 'INTEGER'")
	apptest.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		apptest.OK(t, rows.Scan(&name))
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Errorf("%s has no numbers", table)
	}
	return names
}

// raise makes a number one more in a row of a table, or reports that the database refuses it. undo takes it back.
func raise(t *testing.T, w *sql.DB, table, column string, row int) (refused bool, undo func()) {
	t.Helper()
	exec := func(statement string, args ...any) {
		t.Helper()
		_, err := w.ExecContext(t.Context(), fmt.Sprintf(statement, args...))
		apptest.OK(t, err)
	}
	var key string
	apptest.OK(t, w.QueryRowContext(t.Context(), "SELECT group_concat(name, ', ') FROM pragma_table_info('"+table+
		"') WHERE pk > 0").Scan(&key))
	exec("CREATE TEMP TABLE was AS SELECT * FROM %s", table)
	_, err := w.ExecContext(t.Context(), fmt.Sprintf(`UPDATE %[1]s SET %[2]s = COALESCE(%[2]s, 0) + 1
		WHERE (%[3]s) IN (SELECT %[3]s FROM %[1]s ORDER BY %[3]s LIMIT 1 OFFSET %[4]d)`, table, column, key, row))
	return err != nil, func() {
		t.Helper()
		exec("DELETE FROM %s", table)
		exec("INSERT INTO %s SELECT * FROM was", table)
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
