package storage

import (
	"context"
	"database/sql"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/recharge"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// SetCommit replaces how transactions are committed.
func (s *Store) SetCommit(commit func(*engine.Transaction) error) { s.commits.commit = commit }

// Waiting returns the number of queued units.
func (s *Store) Waiting() int { return len(s.commits.queue) }

// Reader runs fn on a connection that reads.
func (s *Store) Reader(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.database.View(ctx, func(c engine.Conn) error { return fn(c.SQL()) })
}

// SessionColumns are the columns of sessions, id and agent first.
var SessionColumns = sessionColumns

// NewerSchema pretends that a newer program migrated the database.
func (s *Store) NewerSchema() error {
	_, err := s.Writer().Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, '1')")
	return err
}

// Rules are the names of the rules that Verify checks.
func Rules() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// RechargeQueries are the queries over tables that grow for ever, each with what
// its plan has to name.
func RechargeQueries() map[string][]string {
	list, _ := in(2, ownedAtOnce)
	of := func(agentID string, status recharge.Status) string {
		where, args := ordersWhere(agentID, status)
		return pageOfOrders(where, len(args))
	}
	all, _ := deliveriesWhere("a", "")
	failed, _ := deliveriesWhere("a", webhook.Failed)
	return map[string][]string{
		owned(list):      {"(network=? AND address=?)"},
		watched:          {"recharge_addresses USING INDEX sqlite_autoindex_recharge_addresses_1 (network=? AND address=?)", "COVERING INDEX recharge_orders_open (network=? AND status=?)", "USING COVERING INDEX recharge_orders_window (network=? AND expires_at>?)"},
		leastAudited:     {"recharge_addresses_audit (network=?)"},
		addressesByAgent: {"recharge_addresses_agent (network=?)"},
		of("a", ""):      {"recharge_orders_agent (agent_id=?)"},
		of("a", "paid"):  {"COVERING INDEX recharge_orders_"},
		of("", "paid"):   {"recharge_orders_status (status=?)"},
		openOrders:       {"recharge_orders_payable (agent_id=? AND status=?)"},
		payableOpen:      {"recharge_orders_payable (agent_id=? AND status=? AND network=?)"},
		payableLate:      {"recharge_orders_payable (agent_id=? AND status=? AND network=? AND expires_at>?)"},
		overdue:          {"COVERING INDEX recharge_orders_open (network=? AND status=? AND expires_at<?)"},
		seenOf:           {"recharge_transfers_seen_agent (network=? AND agent_id=?)"},
		seenUpTo:         {"recharge_transfers_seen_block (network=? AND block<?)"},
		ofOrder:          {"recharge_transfers_order (order_id=?)"},
		known:            {"COVERING INDEX recharge_transfers_to (network=? AND to_address=? AND state=?)", "COVERING INDEX recharge_transfers_from (network=? AND from_address=? AND state=?)"},
		finalOf:          {"recharge_transfers_to (network=? AND to_address=? AND state=? AND block_time>?)", "recharge_transfers_from (network=? AND from_address=? AND state=? AND block_time>?)"},
		eventsOf:         {"outbox_agent (agent_id=?)"},
		purgeOutbox:      {"outbox_age (at<?)"},
		purgeDeliveries:  {"outbox_age (at<?)", "webhook_deliveries_2 (event_id=?)"},

		endpointOf:                  {"(id=?)", "(agent_id=?)"},
		pageOfDeliveries(all, 1):    {"webhook_deliveries_agent (agent_id=?)"},
		pageOfDeliveries(failed, 2): {"webhook_deliveries_status (agent_id=? AND status=?)"},
		overdueDeliveries:           {"webhook_deliveries_due (next_attempt_at<?)"},
		expiring:                    {"sessions_time_due (expires_at>? AND expires_at<?)"},
		trialsEnding:                {"wallets_trial_due (trial_expires_at>? AND trial_expires_at<?)"},
		touching:                    {"devchain_transfers_to (to_address=? AND block>?)", "devchain_transfers_from (from_address=? AND block>?)"},
	}
}

// OrderQueries are the same for the orders of providers.
func OrderQueries() map[string][]string {
	list, _ := in(2, knownAtOnce)
	of := func(f ports.OrderFilter) string {
		where, args := upstreamWhere(f)
		return pageOfUpstream(where, len(args))
	}
	return map[string][]string{
		loadUpstream:                          {"(id=?)"},
		ofSession:                             {"COVERING INDEX upstream_orders_session (session_id=? AND kind=?)", "upstream_orders USING INTEGER PRIMARY KEY (rowid=?)"},
		byUpstreamRef:                         {"upstream_orders_ref (provider=? AND ref=?)"},
		putUpstream:                           {"(id=?)", "upstream_orders_ref (provider=? AND ref=? AND kind=?)"},
		of(ports.OrderFilter{Status: "sent"}): {"COVERING INDEX upstream_orders_status (status=?)"},
		of(ports.OrderFilter{Provider: "p"}):  {"COVERING INDEX upstream_orders_provider (provider=?)"},
		of(ports.OrderFilter{Frozen: true}):   {"COVERING INDEX upstream_orders_open (status=?)"},
		upstreamDue:                           {"upstream_orders_due (next_at>? AND next_at<?)"},
		rivals:                                {"upstream_orders_open (status=? AND provider=?)"},
		knownRefs(list):                       {"COVERING INDEX upstream_orders_ref (provider=? AND ref=?)"},
		spent:                                 {"COVERING INDEX upstream_orders_spent (provider=? AND sent_at>?)"},
		tallyUpstream:                         {"COVERING INDEX upstream_orders_open (status=?)"},
	}
}
