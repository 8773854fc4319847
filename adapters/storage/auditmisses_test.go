package storage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// corruptions are changes of right books that an operator, an attacker or a fault of the program
// could make. Those of the ledger are made with its triggers off, which are on again afterwards.
var corruptions = map[string]struct {
	post    *billing.Entry // or
	ledger  []string
	others  []string
	trigger bool // stays off
}{
	"a recharge without a transfer": {post: &billing.Entry{ID: "txn_x", AgentID: "agt_2", Type: billing.Recharge,
		Available: billing.Funds{Own: 1_000_000 * domain.Dollar}, Account: billing.USDT,
		Counter: -1_000_000 * domain.Dollar, Ref: "bonus:1", At: now}},
	"a charge for traffic that a session never had": {post: &billing.Entry{ID: "txn_y", AgentID: "agt_1",
		Type: billing.ChargeEntry, Held: billing.Funds{Own: -399_000}, Account: billing.Revenue, Counter: 399_000,
		Ref: "charge:over", SessionID: sessionID(1), At: now},
		others: []string{"UPDATE sessions SET charged_own = charged_own + 399000, held_own = held_own - 399000"}},
	"hours with other traffic and money than the sessions": {others: []string{
		"UPDATE usage_hours SET charged = charged + 5000000, up = up + 777"}},
	"an ended session that holds money forever": {others: []string{
		"UPDATE sessions SET status = 'terminated', reason = 'agent_request', ended_at = 1, settle_at = 0",
		"UPDATE wallets SET live_sessions = live_sessions - 1 WHERE agent_id = 'agt_1'"}},
	"expired trial credit that can be spent": {others: []string{
		"UPDATE wallets SET trial_expired = 1, trial_expires_at = 1"}},
	"another price of a session": {others: []string{"UPDATE sessions SET price = price * 1000"}},
	"trial credit and own money swapped in what a session was charged": {others: []string{
		"UPDATE sessions SET charged_trial = charged_own, charged_own = charged_trial"}},
	"another account, time, text and balance of some entries": {ledger: []string{`UPDATE ledger_entries SET account = 'corrections',
		at = 1, description = 'edited', balance_after = balance_after + 1 WHERE type = 'charge' OR ord = 1`}},
	"another account, time, text, order and session of every entry": {ledger: []string{
		`UPDATE ledger_entries SET account = CASE account WHEN '' THEN '' ELSE 'corrections' END, at = 1,
			description = 'edited', order_id = 'x'`,
		"UPDATE ledger_entries SET session_id = 'sess_other' WHERE type = 'hold'"}},
	"another balance in the middle of a statement": {ledger: []string{
		"UPDATE ledger_entries SET balance_after = balance_after + 99 WHERE agent_id = 'agt_1' AND ord = 1"}},
	"no triggers on the ledger":                    {trigger: true},
	"a paid order without the time of its payment": {others: []string{"UPDATE recharge_orders SET paid_at = 0"}},
	"another cost at the sellers":                  {others: []string{"UPDATE upstream_orders SET cost = 999000000"}},
}

func TestVerifyFindsEveryCorruption(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		for name, c := range corruptions {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				st := openBooks(t, open)
				update(t, st, grantTrial)
				execAll(t, st, fmt.Sprint("UPDATE wallets SET trial_expires_at = ", now.Add(14*24*time.Hour).UnixMicro(),
					" WHERE agent_id = 'agt_1'"))
				verify(t, st)
				if c.post != nil {
					update(t, st, func(ctx context.Context, tx ports.Tx) error {
						_, err := tx.Ledger().Post(ctx, ports.Posting{Entry: *c.post})
						return err
					})
				}
				on := triggersOff(t, st, c.trigger || c.ledger != nil)
				execAll(t, st, c.ledger...)
				if !c.trigger {
					execAll(t, st, on...)
				}
				execAll(t, st, c.others...)
				faults, _, err := st.Verify(t.Context())
				if err != nil || len(faults) == 0 {
					t.Errorf("verify found nothing, %v", err)
				}
				for _, f := range faults {
					if f.Rule == "the ledger cannot be changed" && !c.trigger {
						t.Errorf("found by its triggers: %+v", faults)
					}
				}
			})
		}
	})
}

func grantTrial(ctx context.Context, tx ports.Tx) error {
	e := billing.GrantTrial(10 * domain.Dollar)
	e.ID, e.AgentID, e.Ref, e.At = "txn_trial", "agt_1", "trial:agt_1", now
	_, err := tx.Ledger().Post(ctx, ports.Posting{Entry: e})
	return err
}

func execAll(t *testing.T, st *storage.Store, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := st.Writer().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// triggersOff turns the triggers of the ledger off and returns the statements that turn them on.
func triggersOff(t *testing.T, st *storage.Store, off bool) (on []string) {
	t.Helper()
	if !off {
		return nil
	}
	if st.Pool() != nil {
		execAll(t, st, "ALTER TABLE ledger_entries DISABLE TRIGGER USER")
		return []string{"ALTER TABLE ledger_entries ENABLE TRIGGER USER"}
	}
	for _, name := range []string{"ledger_entries_keep", "ledger_entries_stay"} {
		var create string
		err := st.Writer().QueryRowContext(t.Context(), "SELECT sql FROM sqlite_master WHERE name = $1", name).Scan(&create)
		if err != nil {
			t.Fatal(err)
		}
		on = append(on, create)
		execAll(t, st, "DROP TRIGGER "+name)
	}
	return on
}

// TestVerifyMissesTheTriggersOfActions drops what keeps the operators' actions as they are.
func TestVerifyMissesTheTriggersOfActions(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		names, on := []string{"audit_actions_keep", "audit_actions_stay"}, ""
		if st.Pool() != nil {
			names, on = names[:1], " ON audit_actions"
		}
		for i, name := range names {
			execAll(t, st, "DROP TRIGGER "+name+on)
			faults, _, err := st.Verify(t.Context())
			if err != nil || len(faults) != i+1 || faults[i].Rule != "the ledger cannot be changed" {
				t.Errorf("without %s: %+v, %v", name, faults, err)
			}
		}
	})
}

// Verify reads one snapshot: what units do meanwhile is no fault.
func TestVerifyFindsNothingWhileUnitsRun(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		const writers, each = 6, 15
		st := open(t)
		addAgent(t, st, "agt_1", 1000*domain.Dollar)
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				for n := range each {
					if err := live(t.Context(), st, int64(writer*each+n)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			verify(t, st)
		}
	})
}

// live buys a session, moves and charges traffic on it, and ends it.
func live(ctx context.Context, st *storage.Store, n int64) error {
	const used, cost = 2_500_000, 1000
	id := sessionID(n)
	return errors.Join(
		st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return purchase(ctx, tx, "agt_1", n) }),
		st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			s, err := tx.Sessions().Load(ctx, id)
			if err != nil {
				return err
			}
			charge := billing.Charge(s.Money.Held, cost)
			charge.ID, charge.AgentID, charge.Ref, charge.SessionID, charge.At = "txn_c"+id, "agt_1", "charge:"+id, id, now
			if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: charge}); err != nil {
				return err
			}
			s.Money.Held.Own -= cost
			s.Money.Charged.Own += cost
			return errors.Join(tx.Sessions().Put(ctx, s),
				tx.Traffic().PutUsage(ctx, id, traffic.Delta{Up: used, Connections: 1, At: now}),
				tx.Traffic().Record(ctx, "agt_1", id, now, ports.Totals{Up: used, Connections: 1}),
				tx.Counters().Add(ctx, "agt_1", ports.Tally{Bytes: used}))
		}),
		st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := terminate(ctx, tx, "agt_1", id); err != nil {
				return fmt.Errorf("terminate %s: %w", id, err)
			}
			return nil
		}))
}
