package storage_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// plan is how the database answers a query, a line for each step.
func plan(t testing.TB, st *storage.Store, query string) string {
	t.Helper()
	var b strings.Builder
	err := st.Reader(t.Context(), func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, make([]any, highest(query))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			b.WriteString(detail + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return b.String()
}

// highest returns the number of parameters of a query, which are ? or ?1, ?2.
func highest(query string) int {
	numbered := 0
	for part := range strings.SplitSeq(query, "?") {
		var i int
		if _, err := fmt.Sscanf(part, "%d", &i); err == nil {
			numbered = max(numbered, i)
		}
	}
	return cmp.Or(numbered, strings.Count(query, "?"))
}

// use is a call that reads a table which grows for ever, and what the plans of its statements name.
type use struct {
	call func(context.Context, ports.Tx) error
	plan []string
}

func TestRechargesAreFoundByIndex(t *testing.T) {
	page := domain.Page{Number: 2, Size: 20}
	foundByIndex(t, map[string]use{
		"owned": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.PayAddresses().Owned(ctx, "tron", []string{"a", "b", "c"})
			return err
		}, []string{"(network=? AND address=?)"}},
		"addresses": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.PayAddresses().Addresses(ctx, "tron", 5)
			return err
		}, []string{"recharge_addresses_audit (network=?)"}},
		"all addresses": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.PayAddresses().AllAddresses(ctx, "tron")
			return err
		}, []string{"recharge_addresses_agent (network=?)"}},
		"orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Orders(ctx, "agt_1", "", page)
			return err
		}, []string{"recharge_orders_agent (agent_id=?)"}},
		"paid orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Orders(ctx, "agt_1", "paid", page)
			return err
		}, []string{"COVERING INDEX recharge_orders_"}},
		"all paid orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Orders(ctx, "", "paid", page)
			return err
		}, []string{"recharge_orders_status (status=?)"}},
		"open orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().OpenOrders(ctx, "tron", "agt_1")
			return err
		}, []string{"recharge_orders_payable (agent_id=? AND status=? AND network=?)"}},
		"payable orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Payable(ctx, "tron", "agt_1", now)
			return err
		}, []string{"recharge_orders_payable (agent_id=? AND status=? AND network=?)",
			"recharge_orders_payable (agent_id=? AND status=? AND network=? AND expires_at>?)"}},
		"overdue orders": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Recharges().Overdue(ctx, "tron", now, 5)
			return err
		}, []string{"COVERING INDEX recharge_orders_open (network=? AND status=? AND expires_at<?)"}},
		"seen of an agent": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().SeenOf(ctx, "tron", "agt_1")
			return err
		}, []string{"recharge_transfers_seen_agent (network=? AND agent_id=?)"}},
		"seen up to a block": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().SeenUpTo(ctx, "tron", 5, 5)
			return err
		}, []string{"recharge_transfers_seen_block (network=? AND block<?)"}},
		"of an order": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().OfOrder(ctx, "PAY1")
			return err
		}, []string{"recharge_transfers_order (order_id=?)"}},
		"known": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().Known(ctx, "tron", "a")
			return err
		}, []string{"COVERING INDEX recharge_transfers_to (network=? AND to_address=? AND state=?)",
			"COVERING INDEX recharge_transfers_from (network=? AND from_address=? AND state=?)"}},
		"final of an address": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Transfers().FinalOf(ctx, "tron", "a", now)
			return err
		}, []string{"recharge_transfers_to (network=? AND to_address=? AND state=? AND block_time>?)",
			"recharge_transfers_from (network=? AND from_address=? AND state=? AND block_time>?)"}},
		"touching an address": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Devchain().Touching(ctx, "a", 5)
			return err
		}, []string{"devchain_transfers_to (to_address=? AND block>?)", "devchain_transfers_from (from_address=? AND block>?)"}},
	})
}

func TestWebhooksAreFoundByIndex(t *testing.T) {
	page := domain.Page{Number: 2, Size: 20}
	deliveries := func(of webhook.Status) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Webhooks().Deliveries(ctx, "agt_1", of, page)
			return err
		}
	}
	foundByIndex(t, map[string]use{
		"purge": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Outbox().Purge(ctx, now, 5)
			return err
		}, []string{"(rowid>?)", "webhook_deliveries_2 (event_id=?)"}},
		"purge refused": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Outbox().PurgeRefused(ctx, now, 5)
			return err
		}, []string{"webhook_deliveries_refused (created_at<?)"}},
		"an endpoint": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Webhooks().Endpoint(ctx, "agt_1")
			return err
		}, []string{"(id=?)", "(agent_id=?)"}},
		"deliveries":        {deliveries(""), []string{"webhook_deliveries_agent (agent_id=?)"}},
		"failed deliveries": {deliveries(webhook.Failed), []string{"webhook_deliveries_status (agent_id=? AND status=?)"}},
		"overdue deliveries": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Webhooks().Overdue(ctx, now, 5)
			return err
		}, []string{"webhook_deliveries_due (next_attempt_at<?)"}},
		"sessions that expire": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Expiring(ctx, now, now, 5)
			return err
		}, []string{"sessions_time_due (expires_at>? AND expires_at<?)"}},
		"trials that end": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Ledger().TrialsEnding(ctx, now, now, 5)
			return err
		}, []string{"wallets_trial_due (trial_expires_at>? AND trial_expires_at<?)"}},
	})
}

func TestOrdersAreFoundByIndex(t *testing.T) {
	order := procurement.Order{ID: "ord_1", Kind: procurement.Purchase, SessionID: "sess_1", Provider: "p", Status: procurement.Confirmed,
		Ref: "r", Intent: procurement.Intent{Key: "ord_1", SessionID: "sess_1"}}
	list := func(f ports.OrderFilter) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().List(ctx, f, domain.Page{Number: 2, Size: 20})
			return err
		}
	}
	foundByIndex(t, map[string]use{
		"by id": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Get(ctx, "ord_1")
			return err
		}, []string{"(id=?)"}},
		"of a session": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Of(ctx, "sess_1")
			return err
		}, []string{"COVERING INDEX upstream_orders_session (session_id=? AND kind=?)", "upstream_orders USING INTEGER PRIMARY KEY (rowid=?)"}},
		"by ref": {func(ctx context.Context, tx ports.Tx) error {
			_, _ = tx.Orders().ByRef(ctx, "p", "r")
			return nil
		}, []string{"upstream_orders_ref (provider=? AND ref=?)"}},
		"write": {func(ctx context.Context, tx ports.Tx) error { return tx.Orders().Put(ctx, order) },
			[]string{"(id=?)", "upstream_orders_ref (provider=? AND ref=? AND kind=?)"}},
		"sent":   {list(ports.OrderFilter{Status: "sent"}), []string{"COVERING INDEX upstream_orders_status (status=?)"}},
		"of one": {list(ports.OrderFilter{Provider: "p"}), []string{"COVERING INDEX upstream_orders_provider (provider=?)"}},
		"frozen": {list(ports.OrderFilter{Frozen: true}), []string{"COVERING INDEX upstream_orders_open (status=?)"}},
		"due": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Due(ctx, now, 5)
			return err
		}, []string{"upstream_orders_due (next_at>? AND next_at<?)"}},
		"waiting": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Waiting(ctx, order, 0, 5)
			return err
		}, []string{"upstream_orders_open (status=? AND provider=?)", "upstream_orders_provider (provider=?)"}},
		"rivals": {func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Orders().CountOpen(ctx, order)
			return err
		}, []string{"upstream_orders_open (status=? AND provider=?)"}},
		"known refs": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Known(ctx, "p", []string{"a", "b", "c"})
			return err
		}, []string{"COVERING INDEX upstream_orders_ref (provider=? AND ref=?)"}},
		"spent": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Spent(ctx, "p", now)
			return err
		}, []string{"COVERING INDEX upstream_orders_spent (provider=? AND sent_at>?)"}},
		"owed": {func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Orders().Owed(ctx)
			return err
		}, []string{"upstream_orders_owed (closed_at=?)"}},
		"tally": {func(ctx context.Context, tx ports.Tx) error {
			_, _, err := tx.Orders().Tally(ctx)
			return err
		}, []string{"COVERING INDEX upstream_orders_open (status=?)"}},
	})
}

// foundByIndex demands that the plans of a call name the indexes, and that no statement of it reads a
// whole table.
func foundByIndex(t *testing.T, uses map[string]use) {
	st := openStore(t)
	addAgent(t, st, "agt_1", 1)
	seed(t, st)
	for name, u := range uses {
		statements, err := st.Statements(t.Context(), u.call)
		if err != nil || len(statements) == 0 {
			t.Fatalf("%s: %v, %d statements", name, err, len(statements))
		}
		all := ""
		for _, statement := range statements {
			got := plan(t, st, statement)
			all += got
			for line := range strings.SplitSeq(got, "\n") {
				table, scans := strings.CutPrefix(line, "SCAN ")
				if scans && table != "CONSTANT ROW" && !strings.Contains(got, "CO-ROUTINE "+table+"\n") &&
					!strings.Contains(table, " USING ") {
					t.Errorf("%s reads a whole table:\n%s\nof %.300s", name, got, statement)
				}
			}
		}
		for _, index := range u.plan {
			if !strings.Contains(all, index) {
				t.Errorf("%s does not use %s:\n%s\nof %.600s", name, index, all, statements)
			}
		}
	}
}

// seed adds rows enough for every page to be read.
func seed(t *testing.T, st *storage.Store) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for i := range 25 {
			id := fmt.Sprint(i)
			o := recharge.NewOrder("PAY"+id, "agt_1", "tron", "Ta", domain.Dollar, now)
			paid := o
			paid.ID, paid.Status, paid.Received = "PAID"+id, recharge.Paid, domain.Dollar
			order := func(kind, status, provider string, frozen time.Time) procurement.Order {
				key := "ord_" + kind + id
				return procurement.Order{ID: key, Kind: procurement.Kind(kind), SessionID: "sess_1", Provider: provider,
					Status: procurement.Status(status), FrozenAt: frozen, Intent: procurement.Intent{Key: key, SessionID: "sess_1"}}
			}
			err := errors.Join(
				tx.Recharges().InsertOrder(ctx, o), tx.Recharges().InsertOrder(ctx, paid),
				tx.Orders().Insert(ctx, order("purchase", "sent", "p", now)),
				tx.Outbox().Append(ctx, webhook.Event{ID: "evt_" + id, AgentID: "agt_1", Type: webhook.RechargePaid, At: now}),
				tx.Webhooks().InsertDelivery(ctx, webhook.Delivery{ID: "dlv_" + id, AgentID: "agt_1", EventID: "evt_" + id,
					Type: webhook.RechargePaid, Status: webhook.Failed}),
			)
			if err != nil {
				return err
			}
		}
		return tx.Orders().Insert(ctx, procurement.Order{ID: "ord_1", Kind: procurement.Purchase, SessionID: "sess_1", Provider: "p",
			Status: procurement.Sent, Intent: procurement.Intent{Key: "ord_1", SessionID: "sess_1"}})
	})
}

// No statement changes or removes what was credited.
func TestAFinalTransferIsAsFixedAsTheLedger(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		for _, statement := range []string{"UPDATE recharge_transfers SET note = 'x' WHERE tx_id = 'aa'",
			"DELETE FROM recharge_transfers WHERE tx_id = 'aa'"} {
			if _, err := st.Writer().ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "a final transfer is never") {
				t.Errorf("%s: %v", statement, err)
			}
		}
		for _, statement := range []string{"UPDATE recharge_transfers SET note = 'x' WHERE state = 'seen'",
			"DELETE FROM recharge_transfers WHERE state = 'seen'"} {
			if _, err := st.Writer().ExecContext(t.Context(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

// BenchmarkOwned finds whose the transfers of a block are: 500 of them, so 1,000
// addresses, one in ten of which is one of our 100,000.
func BenchmarkOwned(b *testing.B) {
	const ours, transfers = 100_000, 500
	st := openStore(b)
	_, err := st.Writer().Exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
		INSERT INTO recharge_addresses (network, fingerprint, idx, agent_id, address, created_at, read_through, audited_at, drift)
		SELECT 'tron', 'key', i, printf('agt_%d', i), printf('T%033d', i * 48271 % 2147483647), 0, 0, 0, 0 FROM n`, ours)
	if err != nil {
		b.Fatal(err)
	}
	var block []string
	for i := range 2 * transfers {
		n := i * 97 % ours
		if i%10 > 0 {
			n += ours
		}
		block = append(block, fmt.Sprintf("T%033d", n*48271%2147483647))
	}
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		view(b, st, func(ctx context.Context, tx ports.Tx) error {
			found, err := tx.PayAddresses().Owned(ctx, "tron", block)
			if len(found) != transfers/5 {
				b.Errorf("%d are ours", len(found))
			}
			return err
		})
		b.ReportMetric(float64(time.Since(start).Microseconds()), "last-µs")
	}
}
