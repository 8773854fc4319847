package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// openBooks is a store in which everything happened once, and rightly.
func openBooks(t *testing.T, open func(testing.TB) *storage.Store) *storage.Store {
	st := usedBooks(t, open)
	update(t, st, receive)
	update(t, st, buy)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.KeyWallets().Restrict(ctx, "agt_1", "key_a", account.Limits{MaxSessions: 2}, now)
	})
	return st
}

// usedBooks is a store in which one of two agents used a session that is served in process.
func usedBooks(t *testing.T, open func(testing.TB) *storage.Store) *storage.Store {
	const used = 2_500_000 // bytes, which cost 1000
	st := open(t)
	addAgent(t, st, "agt_1", 5*domain.Dollar)
	addAgent(t, st, "agt_2", 5*domain.Dollar)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return purchase(ctx, tx, "agt_1", 1) })
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		id := "sess_00000000000000007919"
		charge := billing.Charge(billing.Funds{Own: 400_000}, 1000)
		charge.ID, charge.AgentID, charge.Ref, charge.SessionID, charge.At = "txn_c", "agt_1", "charge:1", id, now
		if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: charge}); err != nil {
			return err
		}
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		s.Money.Held.Own -= 1000
		s.Money.Charged.Own += 1000
		if err := tx.Sessions().Put(ctx, s); err != nil {
			return err
		}
		if err := tx.Traffic().PutLease(ctx, traffic.Lease{SessionID: id, ID: "l", Granted: used + 50, Up: used}); err != nil {
			return err
		}
		return errors.Join(tx.Traffic().PutUsage(ctx, id, traffic.Delta{Up: used, Leased: 50, At: now}),
			tx.Traffic().Record(ctx, "agt_1", id, now, ports.Totals{Up: used}),
			tx.Counters().Add(ctx, "agt_1", ports.Tally{Bytes: used}))
	})
	return st
}

// buy orders for the session of agt_1: of one provider, which refuses, and of
// another one, where it is renewed too.
func buy(ctx context.Context, tx ports.Tx) error {
	for n, status := range []procurement.Status{procurement.Refused, procurement.Confirmed, procurement.Confirmed} {
		id, sessionID := fmt.Sprint("ord_", n), "sess_00000000000000007919"
		o := procurement.Order{ID: id, Kind: procurement.Purchase, SessionID: sessionID, Provider: "embedded", Status: status,
			Intent: procurement.Intent{Key: id, SessionID: sessionID, Type: session.Dynamic, Quantity: 1, Bytes: billing.GB,
				Location: session.Location{Country: "DE"}}, SealedDelivery: []byte("sealed"), PlannedAt: now, NextAt: now}
		switch n {
		case 0:
			o.Provider, o.SealedDelivery = "another", nil
		case 2:
			o.Kind, o.SealedDelivery = procurement.Renewal, nil
		}
		if err := tx.Orders().Insert(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// receive pays one order of agt_1 by two transfers, and brings a third that pays
// none.
func receive(ctx context.Context, tx ports.Tx) error {
	const network, address = "tron", "Ta"
	index, err := tx.PayAddresses().NextIndex(ctx, network, "")
	if err != nil {
		return err
	}
	err = tx.PayAddresses().InsertAddress(ctx, recharge.Address{Network: network, Index: index, AgentID: "agt_1", Address: address})
	if err != nil {
		return err
	}
	paid := recharge.NewOrder("PAY1", "agt_1", network, address, 7*domain.Dollar, now)
	paid.Received, paid.Status, paid.PaidAt = 8*domain.Dollar, recharge.Paid, now
	waits := recharge.NewOrder("PAY2", "agt_1", network, address, 7*domain.Dollar, now)
	if err := errors.Join(tx.Recharges().InsertOrder(ctx, paid), tx.Recharges().InsertOrder(ctx, waits)); err != nil {
		return err
	}
	for n, orderID := range []string{"PAY1", "PAY1", ""} {
		x := recharge.Transfer{Key: recharge.Key{Network: network, TxID: "aa", LogIndex: n}, To: address,
			Amount: 4 * domain.Dollar, BlockTime: now, State: recharge.Final, AgentID: "agt_1", OrderID: orderID}
		if _, err := tx.Transfers().PutTransfer(ctx, x); err != nil {
			return err
		}
		_, err := tx.Ledger().Post(ctx, ports.Posting{Entry: billing.Entry{ID: fmt.Sprint("txn_u", n), AgentID: "agt_1",
			Type: billing.Recharge, Available: billing.Funds{Own: x.Amount}, Account: billing.USDT, Counter: -x.Amount,
			Ref: fmt.Sprint("usdt:tron:aa:", n), OrderID: orderID, At: now}})
		if err != nil {
			return err
		}
	}
	// Out of the address, and one that is not final: neither is credited.
	for n, x := range []recharge.Transfer{{From: address, To: "Tb", State: recharge.Final}, {To: address, State: recharge.Seen,
		AgentID: "agt_1", OrderID: "PAY2"}} {
		x.Key, x.Amount = recharge.Key{Network: network, TxID: "bb", LogIndex: n}, domain.Dollar
		if _, err := tx.Transfers().PutTransfer(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func TestRightBooksHaveNoFault(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		faults, entries, err := openBooks(t, open).Verify(t.Context())
		if err != nil || len(faults) > 0 || entries != 7 {
			t.Errorf("%d entries, %+v, %v", entries, faults, err)
		}
	})
}

// unguarded takes off what keeps the tables of a store from being broken, and returns a function that gives them the rows
// back that they have now: that is sooner done than to book everything in a new database.
func unguarded(t *testing.T, st *storage.Store) (restore func(*testing.T)) {
	run := func(t *testing.T, statement string) {
		t.Helper()
		if _, err := st.Writer().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tables := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
	if st.Pool() == nil {
		run(t, `PRAGMA ignore_check_constraints = on; PRAGMA foreign_keys = off;
			DROP TRIGGER ledger_entries_keep; DROP TRIGGER ledger_entries_stay;
			DROP TRIGGER recharge_transfers_keep; DROP TRIGGER recharge_transfers_stay`)
	} else {
		tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
		run(t, `DO $$ DECLARE c record; BEGIN
			FOR c IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
				WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace AND conrelid <> 0 LOOP
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.of, c.conname);
			END LOOP;
			ALTER TABLE ledger_entries DISABLE TRIGGER USER;
			ALTER TABLE recharge_transfers DISABLE TRIGGER USER;
			END $$`)
	}
	script := "BEGIN;"
	for _, table := range column(t, st, tables) {
		script += "DELETE FROM " + table + ";"
		if len(column(t, st, "SELECT 'filled' FROM "+table+" LIMIT 1")) > 0 {
			run(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
			script += "INSERT INTO " + table + " SELECT * FROM kept_" + table + ";"
		}
	}
	return func(t *testing.T) { t.Helper(); run(t, script+"COMMIT") }
}

// column returns the first column of a query.
func column(t *testing.T, st *storage.Store, query string) (found []string) {
	t.Helper()
	rows, err := st.Writer().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		found = append(found, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestVerifyNamesWhatWasBroken(t *testing.T) {
	t.Parallel()
	onEachStore(t, verifyNamesWhatWasBroken)
}

func verifyNamesWhatWasBroken(t *testing.T, open func(testing.TB) *storage.Store) {
	st := openBooks(t, open)
	restore := unguarded(t, st)
	// What takes several statements is in TestVerifySeesTheCorruptionsOfTheAudit.
	covered := map[string]bool{"what an operator decides of an account is an action of his": true, "every old entry is proved": true,
		"no action of an operator that was proved has changed": true,
		// In TestEveryColumnOfMoneyIsProved: it takes hours that are counted.
		"the deliveries that are summed of an agent in process are of its hours and terms": true}
	for breaking, rule := range map[string]string{
		"UPDATE ledger_entries SET counter = counter + 1 WHERE ref = 'charge:1'":   "every entry sums to zero",
		"UPDATE ledger_entries SET account = '' WHERE ref = 'charge:1'":            "every entry sums to zero",
		"UPDATE ledger_entries SET agent_id = 'agt_9' WHERE ref = 'charge:1'":      "every entry belongs to a wallet",
		"UPDATE wallets SET held_trial = -1 WHERE agent_id = 'agt_1'":              "no part of a wallet is negative",
		"UPDATE wallets SET own = own + 1 WHERE agent_id = 'agt_2'":                "every wallet equals its entries",
		"UPDATE wallets SET own = own - 1, trial = 1 WHERE agent_id = 'agt_2'":     "every wallet equals its entries",
		"UPDATE wallets SET charged = 0 WHERE agent_id = 'agt_1'":                  "what a wallet was charged, refunded and recharged equals its entries",
		"DELETE FROM ledger_entries WHERE ref = 'charge:1'":                        "no entry is missing",
		"UPDATE ledger_entries SET balance_after = 1 WHERE ref = 'usdt:tron:aa:2'": "the balance after an entry is the sum up to it",
		"UPDATE sessions SET held_own = held_own + 1":                              "what a wallet holds its sessions hold",
		"UPDATE sessions SET held_own = held_own - 1, held_trial = 1":              "what a wallet holds its sessions hold",
		"UPDATE sessions SET status = 'terminated'":                                "a wallet counts its live sessions",
		"UPDATE key_wallets SET held = held + 1":                                   "what a restricted key spent and holds its sessions cost and hold",
		"UPDATE key_wallets SET live_sessions = 1":                                 "what a restricted key spent and holds its sessions cost and hold",
		"UPDATE sessions SET bought_by = 'key_a'":                                  "what a restricted key spent and holds its sessions cost and hold",
		"DELETE FROM key_wallets":                                                  "a wallet counts the restricted keys of its agent",
		"UPDATE sessions SET up = bytes":                                           "no session used more than it bought",
		"UPDATE leases SET granted = granted + 1":                                  "what a session leased its leases have left",
		"DELETE FROM leases":                                                                    "what a session leased its leases have left",
		"UPDATE sessions SET charged_own = 0":                                                   "what a session holds, was charged and refunded equals its entries",
		"UPDATE sessions SET refunded_own = 1":                                                  "what a session holds, was charged and refunded equals its entries",
		"DELETE FROM recharge_transfers WHERE tx_id = 'aa' AND log_index = 2":                   "every recharge is a final transfer of that amount, agent and order",
		"UPDATE recharge_transfers SET state = 'seen' WHERE tx_id = 'aa' AND log_index = 2":     "every recharge is a final transfer of that amount, agent and order",
		"UPDATE recharge_transfers SET amount = 1 WHERE tx_id = 'aa' AND log_index = 2":         "every recharge is a final transfer of that amount, agent and order",
		"UPDATE recharge_transfers SET agent_id = 'agt_2' WHERE tx_id = 'aa' AND log_index = 2": "every recharge is a final transfer of that amount, agent and order",
		"UPDATE recharge_transfers SET network = 'other' WHERE tx_id = 'aa' AND log_index = 2":  "every recharge is a final transfer of that amount, agent and order",
		"UPDATE ledger_entries SET type = 'adjustment' WHERE ref = 'usdt:tron:aa:2'":            "every recharge is a final transfer of that amount, agent and order",
		"UPDATE ledger_entries SET ref = 'fund:tron:aa:2' WHERE ref = 'usdt:tron:aa:2'":         "every final transfer is credited to its agent",
		"UPDATE ledger_entries SET agent_id = 'agt_2' WHERE ref = 'usdt:tron:aa:2'":             "every final transfer is credited to its agent",
		"UPDATE ledger_entries SET own = 1 WHERE ref = 'usdt:tron:aa:2'":                        "every final transfer is credited to its agent",
		"UPDATE ledger_entries SET type = 'refund' WHERE ref = 'usdt:tron:aa:2'":                "every final transfer is credited to its agent",
		"UPDATE recharge_transfers SET state = 'final' WHERE tx_id = 'bb' AND log_index = 1":    "every final transfer is credited to its agent",
		"UPDATE recharge_transfers SET note = 'moved' WHERE tx_id = 'aa' AND log_index = 2":     "what the operator moved between addresses is of no agent",
		`INSERT INTO recharge_aside (network, tx_id, log_index, agent_id, amount, block, reason, set_at, tried_at, tries)
			SELECT network, tx_id, log_index, agent_id, amount, 1, 'x', 1, 1, 1 FROM recharge_transfers
			WHERE tx_id = 'aa' AND log_index = 2`: "what is set aside is not booked",
		"UPDATE recharge_transfers SET agent_id = '' WHERE tx_id = 'aa' AND log_index = 2":             "a final transfer to an agent's address is that agent's",
		"UPDATE recharge_orders SET received = received + 1 WHERE id = 'PAY1'":                         "what an order received its final transfers brought",
		"UPDATE recharge_orders SET received = 1 WHERE id = 'PAY2'":                                    "what an order received its final transfers brought",
		"UPDATE recharge_transfers SET state = 'orphaned' WHERE tx_id = 'aa' AND log_index = 0":        "what an order received its final transfers brought",
		"UPDATE recharge_transfers SET order_id = 'PAY2' WHERE tx_id = 'aa' AND log_index = 2":         "what an order received its final transfers brought",
		"UPDATE recharge_transfers SET network = 'other' WHERE order_id = 'PAY1' AND state = 'final'":  "what an order received its final transfers brought",
		"UPDATE recharge_transfers SET agent_id = 'agt_2' WHERE order_id = 'PAY1' AND state = 'final'": "what an order received its final transfers brought",
		"UPDATE recharge_orders SET amount = received + 1 WHERE id = 'PAY1'":                           "an order is paid when it received its amount",
		"UPDATE recharge_orders SET status = 'expired' WHERE id = 'PAY1'":                              "an order is paid when it received its amount",
		"UPDATE recharge_orders SET status = 'paid' WHERE id = 'PAY2'":                                 "an order is paid when it received its amount",
		"UPDATE upstream_orders SET session_id = 'sess_9' WHERE id = 'ord_0'":                          "every order of a provider belongs to a session",
		"UPDATE upstream_orders SET kind = 'purchase' WHERE id = 'ord_2'":                              "nothing is bought twice for a session",
		"UPDATE upstream_orders SET status = 'confirmed' WHERE id = 'ord_0'":                           "nothing is bought twice for a session",
		"UPDATE upstream_orders SET goods = substr(goods, 1, 0) WHERE id = 'ord_1'":                    "what was bought is kept, and nothing else",
		"UPDATE upstream_orders SET status = 'unknown' WHERE id = 'ord_1'":                             "what was bought is kept, and nothing else",
		"UPDATE upstream_orders SET kind = 'renewal' WHERE id = 'ord_1'":                               "what was bought is kept, and nothing else",

		"UPDATE ledger_entries SET account = 'corrections' WHERE ref = 'charge:1'":  "every entry moves what its type moves",
		"UPDATE ledger_entries SET type = 'bonus' WHERE ref = 'charge:1'":           "every entry moves what its type moves",
		"UPDATE ledger_entries SET balance_after = balance_after + 1 WHERE ord = 1": "the balance after an entry is the sum up to it",
		"UPDATE wallets SET trial = 1, trial_expired = 1":                           "expired trial credit is not spendable",
		"UPDATE usage_hours SET recharged = recharged + 1":                          "what the hours of an agent were charged, refunded and recharged equals its wallet",
		"UPDATE counters SET bytes = bytes + 1":                                     "the traffic and the rotations of an agent are those of its sessions",
		"UPDATE sessions SET rotations = 1":                                         "the traffic and the rotations of an agent are those of its sessions",
		"UPDATE sessions SET worker_rotations = 1":                                  "the traffic and the rotations of an agent are those of its sessions",
		`INSERT INTO workers (session, name, country, city, ttl, strict, uniq, max_bytes, exit_ip, turn, assigned_at, lost, changeable,
			rotations, created_at, up) SELECT seq, 'w1', '', '', 0, 0, 0, 0, '', 0, 1, 0, 0, 0, 1, up + down + 1 FROM sessions WHERE up > 0`: "no workers moved more than their session",
		`INSERT INTO session_archive (session, at, workers, up, down, connections, data)
			SELECT seq, 1, 1, up, 1, connections, (SELECT goods FROM upstream_orders WHERE id = 'ord_1') FROM sessions WHERE up > 0`: "no workers moved more than their session",
		"UPDATE sessions SET charged_own = 0, charged_trial = charged_own":                                     "what a session holds, was charged and refunded equals its entries",
		"UPDATE ledger_entries SET session_id = 'sess_9' WHERE ref = 'charge:1'":                               "every entry of a session is of its agent",
		"UPDATE ledger_entries SET agent_id = 'agt_2' WHERE ref = 'charge:1'":                                  "every entry of a session is of its agent",
		"UPDATE sessions SET refunded_own = charged_own + 1":                                                   "no session is refunded more than it was charged",
		"UPDATE sessions SET price = price * 1000":                                                             "what was held for a session is its price",
		"UPDATE sessions SET price = 9223372036854775807":                                                      "what was held for a session is its price",
		"UPDATE sessions SET bytes = 2 * bytes":                                                                "what was held for a session is its price",
		"UPDATE sessions SET type = 'static', quantity = 2":                                                    "what was held for a session is its price",
		"INSERT INTO session_topups SELECT agent_id, id, 1, 0, 0, 1000000, price, 1 FROM sessions":             "what was held for added traffic is its price",
		"UPDATE ledger_entries SET ref = ref || ':traffic:1' WHERE type = 'hold'":                              "what was held for added traffic is its price",
		"INSERT INTO session_topups SELECT agent_id, id, 1, 1, 1000, bytes - 1000, price / 4, 1 FROM sessions": "traffic is charged to its price once settled, and never beyond",
		"UPDATE sessions SET up = up - 100000":                                                                 "traffic is charged to its price once settled, and never beyond",
		"UPDATE sessions SET up = up + 100000, held_own = 0, status = 'expired'":                               "traffic is charged to its price once settled, and never beyond",
		"UPDATE sessions SET status = 'expired', ended_at = 1, reason = 'x'":                                   "an ended session that holds money waits for something",
		"UPDATE sessions SET activated_at = 0":                                                                 "a session that was never active is charged for what was delivered",
		"UPDATE sessions SET up = up + 100000":                                                                 "an active session with traffic that is not charged is settled later",
		"UPDATE sessions SET status = 'expired', ended_at = 1":                                                 "a session has an end and a reason once it ended, and not before",
		"UPDATE sessions SET reason = 'x', ended_at = 1":                                                       "a session has an end and a reason once it ended, and not before",
		"UPDATE sessions SET exits = ''":                                                                       "an active session has its exits",
		"UPDATE sessions SET quantity = 2":                                                                     "an active session has its exits",
		"INSERT INTO static_addresses VALUES ('p', '192.0.2.1', 'sess_9')":                                     "only a live session has addresses",
		"UPDATE sessions SET type = 'static', kept = 1":                                                        "what a session keeps and which addresses ended is as they were given back",
		"UPDATE sessions SET type = 'static', ended_exits = '0,1,2'":                                           "what a session keeps and which addresses ended is as they were given back",
		"INSERT INTO replacements SELECT 'rep_' || id, agent_id, id, 'p', 'DE', 0, '192.0.2.1', '', 'other', 'offered', 'done', '', 5, 0, 0, 1, 1, 0 FROM sessions":        "an address that was given back is refunded what it is due",
		"INSERT INTO replacements SELECT 'rep2_' || id, agent_id, id, 'p', 'DE', 0, '192.0.2.1', '', 'other', 'contradicted', 'ended', '', 0, 7, 0, 1, 1, 1 FROM sessions": "an address that was given back is refunded what it is due",
		"UPDATE sessions SET type = 'static'":                                                                               "an active static session has its addresses",
		"UPDATE sessions SET status = 'failed'":                                                                             "a failed session has no idempotency key",
		"UPDATE usage_hours SET up = up + 777":                                                                              "the hours of a session add up to it",
		"UPDATE usage_hours SET charged = charged + 1":                                                                      "the hours of a session add up to it",
		"UPDATE ledger_entries SET ref = 'bonus:1' WHERE ref = 'usdt:tron:aa:2'":                                            "every recharge is a final transfer of that amount, agent and order",
		"UPDATE ledger_entries SET order_id = 'PAY9' WHERE ref = 'usdt:tron:aa:1'":                                          "every recharge is a final transfer of that amount, agent and order",
		"UPDATE recharge_orders SET paid_at = 0":                                                                            "a paid order has the time of its payment",
		"UPDATE recharge_orders SET paid_at = 1":                                                                            "a paid order has the time of its payment",
		"UPDATE upstream_orders SET cost = 1 WHERE id = 'ord_0'":                                                            "an order that was not sent has no cost",
		"INSERT INTO session_counts (agent_id, product_no, type, status, n) VALUES ('agt_1', 'p', 'dynamic', 'expired', 1)": "the counts of ended sessions are right",
		"UPDATE sessions SET counted = 1":                                                                                   "the counts of ended sessions are right",
		"UPDATE sessions SET counted = 1 WHERE status = 'active'":                                                           "a counted session ended and holds nothing",
		"UPDATE usage_hours SET counted = 1":                                                                                "the sums of hours are right",
		`INSERT INTO agent_hours (agent_id, hour, of_sessions, up, down, connections, charged, refunded, recharged, last)
			VALUES ('agt_2', 0, 1, 0, 0, 0, 0, 0, 0, 1)`: "the counts of sessions by their last hour are right",
		`INSERT INTO session_archive (session, at, workers, up, down, connections, data)
			SELECT s.seq, 1, 1, 0, 0, 0, o.goods FROM sessions s JOIN upstream_orders o ON o.session_id = s.id AND o.id = 'ord_1'`: "an archived session ended, holds nothing and has no other workers",
		"SELECT 1": "the ledger cannot be changed",
		"INSERT INTO ledger_months (agent_id, month, type, moved, revenue) VALUES ('agt_1', 0, 'recharge', 1, 0)":                                  "the sums of an agent's months are those of its entries",
		"INSERT INTO ledger_counted (agent_id, entries) VALUES ('agt_2', 1)":                                                                       "the sums of an agent's months are those of its entries",
		"INSERT INTO ledger_counted (agent_id, entries) VALUES ('agt_9', 1)":                                                                       "the sums of an agent's months are those of its entries",
		"INSERT INTO ledger_month_sessions (agent_id, month, ord, held, charged, released, refunded, moved) VALUES ('agt_1', 0, 1, 0, 1, 0, 0, 0)": "the sums of an agent's months by session are those of its entries",

		"INSERT INTO account_days (day, account, counter) VALUES (0, 'revenue', 5)": "the sums of the service's accounts by day are those of the entries",
		`INSERT INTO margin_sums (day, by_key, name, charged, refunded, trial, given, cost, orders)
			VALUES (0, 'agent', 'agt_1', 1, 0, 0, 0, 0, 0)`: "the margin that is summed of a day is of its entries",
		`INSERT INTO margin_sums (day, by_key, name, charged, refunded, trial, given, cost, orders)
			VALUES (0, 'agent', 'agt_1', 0, 0, 0, 0, 0, 1)`: "the costs that are summed of a day are of its orders",
		`INSERT INTO delivery_sums (day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n)
			VALUES (0, 'product', 'x', 'p', 'x', 'dynamic', 0, 0, 0, 0, 1, 0)`: "the deliveries that are summed of a day are of its orders, and the same by each key",
		"UPDATE key_wallets SET spent_today = 1":                             "what a restricted key spent on its day was held on it",
		"UPDATE key_wallets SET spent_day = spent_day + 1":                   "what a restricted key spent on its day was held on it",
		"UPDATE wallets SET spent_day = spent_day + 1":                       "what a wallet spent on its day was held on it",
		"UPDATE wallets SET trial_expired = 1":                               "trial credit ends a number of days after it was granted",
		"UPDATE sessions SET leased = 0":                                     "what leases have left their sessions leased",
		"UPDATE sessions SET days = 1":                                       "a dynamic session has one address and no days",
		"UPDATE upstream_orders SET bytes = bytes + 1 WHERE id = 'ord_1'":    "a session is what was ordered for it",
		"UPDATE sessions SET type = 'static', expires_at = activated_at + 1": "a static session lasts as many days as were paid",
		"UPDATE sessions SET activated_at = 1":                               "a session begins before it is active and ends",
		`UPDATE sessions SET type = 'static', status = 'terminated', reason = 'provider_lost', ended_at = created_at + 5 * 86400000000,
			expires_at = activated_at + 10 * 86400000000`: "a static session that ends early is refunded its unused days by its reason",
		"UPDATE sessions SET type = 'static', price = 1":                                                                          "an active static session is charged, and holds nothing but for a renewal",
		"UPDATE sessions SET country = 'FR'":                                                                                      "a session is what was ordered for it",
		"UPDATE ledger_entries SET description = 'held for another' WHERE type = 'hold'":                                          "a session is of the product that it was held for",
		"UPDATE upstream_orders SET counter_base = 1 + (SELECT up + down FROM sessions WHERE id = session_id) WHERE id = 'ord_1'": "the counter of a direct session began anew within what was used",
		"UPDATE upstream_orders SET next_at = 0":                                                                                  "an active session of a seller has its order there",
		"UPDATE upstream_orders SET ref = id WHERE id = 'ord_1'":                                                                  "an active session of a list has its lines",
		"UPDATE sessions SET settle_at = 7258118400000000, leased = 0":                                                            "a session is settled soon after it was used or ended",
		`UPDATE sessions SET top_ups = '{"no":1,}'`:                                                                               "a session has the additions that were bought for it",
		"UPDATE usage_hours SET hour = 0 WHERE up > 0":                                                                            "the hours of a session lie within its life",
		"UPDATE usage_hours SET hour = 0 WHERE recharged > 0":                                                                     "refunds and recharges are summed in their hours",
		"INSERT INTO static_addresses SELECT provider, '192.0.2.77', id FROM sessions":                                            "the addresses of a session are its exits",
		"UPDATE idempotency_keys SET agent_id = 'agt_2'":                                                                          "an idempotency key names a session of its agent",
		"UPDATE recharge_orders SET paid_at = 2 WHERE id = 'PAY1'":                                                                "an order is paid at the time of a transfer to it",
		"UPDATE recharge_orders SET address = 'Tx'":                                                                               "what an agent pays goes to an address of its own",
		"UPDATE recharge_keys SET next = 0":                                                                                       "no index of a key is given out again",
		"INSERT INTO recharge_marks (network, final_number, final_time, latest, read_at) VALUES ('tron', 2, 0, 1, 0)":             "a chain is read up to its head at most",
		"UPDATE recharge_orders SET status = 'expired' WHERE id = 'PAY2'":                                                         "a window closes once the chain is past it",
		"INSERT INTO trial_grants (day, scope, granted) VALUES (0, 'total', 5)":                                                   "what was granted of the trial on a day is counted",
		"UPDATE wallets SET adjusted = adjusted + 1":                                                                              "a wallet has the sum and the flags of the own money that its entries credit",
		"UPDATE wallets SET credited = 0, funded = 0":                                                                             "a wallet has the sum and the flags of the own money that its entries credit",
		"UPDATE wallets SET spent_today = 1 WHERE agent_id = 'agt_2'":                                                             "what a wallet spent on its day was held on it",
		"UPDATE wallets SET trial_expires_at = 1":                                                                                 "trial credit ends a number of days after it was granted",
		`INSERT INTO ledger_seals (agent_id, month, entries, trial, own, held_trial, held_own, charged, refunded, recharged, digest,
			granted_at, funded, credited, adjusted, last_hold, bytes, rotations)
			VALUES ('agt_2', 1, 1, 0, 5000000, 0, 0, 0, 0, 0, 'another', 0, 0, 1, 5000000, 0, 0, 0)`: "a sealed month is as it was sealed",
		`INSERT INTO ledger_proofs (agent_id, entries, trial, own, held_trial, held_own, charged, refunded, recharged, digest)
			VALUES ('agt_2', 1, 0, 5000000, 0, 0, 0, 0, 0, 'another')`: "no entry that was proved has changed",
	} {
		t.Run(breaking, func(t *testing.T) {
			restore(t)
			if _, err := st.Writer().ExecContext(t.Context(), breaking); err != nil {
				t.Fatal(err)
			}
			faults, _, err := st.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			named := slices.ContainsFunc(faults, func(f ports.Fault) bool {
				return f.Rule == rule && f.Where != "" && f.Detail != ""
			})
			if !named {
				t.Errorf("the faults are %+v", faults)
			}
		})
		covered[rule] = true
	}
	restore(t) // a fault that is kept would have been taken for that of a later row
	faults, _, err := st.Verify(t.Context())
	if err != nil || slices.ContainsFunc(faults, func(f ports.Fault) bool { return f.Rule != "the ledger cannot be changed" }) {
		t.Errorf("of the right rows: %v, %+v", err, faults)
	}
	for _, rule := range st.Rules() {
		if !covered[rule] {
			t.Errorf("nothing shows that %s", rule)
		}
	}
}

// What a restricted key cost is compared with the sessions of its agent alone, in whichever range that is.
func TestKeysAreProvedWithTheirAgents(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		execAll(t, st, "UPDATE sessions SET bought_by = 'key_a'",
			"UPDATE key_wallets SET spent = 1000, held = 399000, live_sessions = 1, spent_today = 400000")
		verify(t, st)
		execAll(t, st, "UPDATE key_wallets SET spent = 1001")
		if faults, _, err := st.Verify(t.Context()); err != nil || len(faults) != 1 {
			t.Errorf("of another sum: %v, %+v", err, faults)
		}
	})
}

// Of right books the tables that grow with sessions are read once by a survey, and few rules are asked for rows that
// break them; what a survey doubts, is asked.
func TestRightBooksAreSurveyed(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		right, faults, err := st.Asked(t.Context())
		if err != nil || len(faults) > 0 {
			t.Fatalf("%v, %+v", err, faults)
		}
		execAll(t, st, "UPDATE sessions SET charged_own = charged_own + 1")
		wrong, faults, err := st.Asked(t.Context())
		if err != nil || len(faults) == 0 {
			t.Errorf("of wrong books: %v, %+v", err, faults)
		}
		if len(right) > mostAsked || len(wrong) <= len(right) {
			t.Errorf("%d statements prove right books, at most %d are allowed; wrong ones %d", len(right), mostAsked, len(wrong))
		}
	})
}

// mostAsked is how many statements prove the books of two agents, a range each.
const mostAsked = 80
