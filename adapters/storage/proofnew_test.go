package storage_test

import (
	"fmt"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
)

// provedNew proves all new entries and returns in how many calls. On PostgreSQL a round proves what was there
// in the one before.
func provedNew(t *testing.T, st *storage.Store) (p ports.Proof, calls int) {
	t.Helper()
	_, before := proveRound(t, st)
	p, calls = proveRound(t, st)
	return p, before + calls
}

// proveRound proves what is new in one round.
func proveRound(t *testing.T, st *storage.Store) (p ports.Proof, calls int) {
	t.Helper()
	for calls = 1; ; calls++ {
		p, more, err := st.ProveNew(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return p, calls
		}
	}
}

// provedEntries is how many entries of each agent are proved.
func provedEntries(t *testing.T, st *storage.Store) (text string) {
	t.Helper()
	rows, err := st.Writer().Query("SELECT agent_id, entries FROM ledger_proofs ORDER BY agent_id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var agent string
		var n int
		if err := rows.Scan(&agent, &n); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s %d ", agent, n)
	}
	return text
}

func TestNewEntriesAreProvedOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		p, calls := provedNew(t, st)
		if p.Faults != 0 || !p.NewAt.Equal(now) || calls < 5 || provedEntries(t, st) != "agt_1 6 agt_2 1 " ||
			storedProof(t, st) != p {
			t.Errorf("%d calls: %+v, proved %s", calls, p, provedEntries(t, st))
		}
		addAgent(t, st, "agt_3", domain.Dollar)
		execAll(t, st, "UPDATE wallets SET charged = charged + 1 WHERE agent_id = 'agt_1'") // not read again
		if p, _ := provedNew(t, st); p.Faults != 0 || provedEntries(t, st) != "agt_1 6 agt_2 1 agt_3 1 " {
			t.Errorf("%+v, proved %s", p, provedEntries(t, st))
		}
		execAll(t, st, "UPDATE wallets SET charged = charged - 1 WHERE agent_id = 'agt_1'")
		if p, _ := provedInParts(t, st); p.Faults != 0 || !p.SucceededAt.Equal(now) {
			t.Errorf("the complete proof: %+v", p)
		}
	})
}

// Two transactions may commit in another order than that of their entries' seq.
func TestAnEntryCommittedLateIsProved(t *testing.T) {
	t.Parallel()
	st := openBooks(t, openPostgres)
	provedNew(t, st)
	late, err := st.Writer().Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref,
			session_id, order_id, description, at, balance_after)
			VALUES ('txn_late', 'agt_2', 2, 'adjustment', 0, 1, 0, 0, 'corrections', -1, 'late', '', '', '', 1, 5000001)`,
		"UPDATE wallets SET own = own + 1, entries = 2 WHERE agent_id = 'agt_2'",
	} {
		if _, err := late.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	addAgent(t, st, "agt_3", domain.Dollar)
	proveRound(t, st)
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	p, _ := provedNew(t, st)
	if p.Faults != 0 || provedEntries(t, st) != "agt_1 6 agt_2 2 agt_3 1 " {
		t.Errorf("%+v, proved %s", p, provedEntries(t, st))
	}
}

func TestWrongNewEntriesAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, breaking string }{
		{"no entry is missing", "DELETE FROM ledger_entries WHERE agent_id = 'agt_1' AND ord = 3"},
		{"no entry is missing", "DELETE FROM ledger_entries WHERE agent_id = 'agt_1' AND ord = 6"},
		{"every entry sums to zero", "UPDATE ledger_entries SET own = own + 1, balance_after = balance_after + 1 WHERE agent_id = 'agt_1' AND ord = 6"},
		{"the balance after an entry is the sum up to it", "UPDATE ledger_entries SET balance_after = 7 WHERE agent_id = 'agt_1' AND ord = 2"},
		{"every wallet equals its entries", "UPDATE ledger_entries SET type = 'adjustment' WHERE agent_id = 'agt_1' AND ord = 6"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := openBooks(t, openStore)
			for _, statement := range []string{"PRAGMA ignore_check_constraints = on", "DROP TRIGGER ledger_entries_keep",
				"DROP TRIGGER ledger_entries_stay", c.breaking} {
				execAll(t, st, statement)
			}
			p, _ := provedNew(t, st)
			if p.Faults != 1 || p.Rule != c.rule || !p.NewAt.IsZero() || provedEntries(t, st) == "" {
				t.Errorf("%+v, proved %s", p, provedEntries(t, st))
			}
			// It is known until a complete proof finds nothing.
			if again, _ := provedNew(t, st); again.Faults != 1 || !again.NewAt.IsZero() {
				t.Errorf("another round: %+v", again)
			}
		})
	}
}

// The wallet is changed with the entry, so that every sum is right.
func TestAProvedEntryThatChangesIsFound(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		provedNew(t, st)
		for _, change := range []struct{ do, undo string }{
			{"UPDATE ledger_entries SET description = 'edited' WHERE ref = 'fund:agt_2'",
				"UPDATE ledger_entries SET description = '' WHERE ref = 'fund:agt_2'"},
			{"UPDATE ledger_entries SET at = at + 1 WHERE ref = 'charge:1'", "UPDATE ledger_entries SET at = at - 1 WHERE ref = 'charge:1'"},
		} {
			on := triggersOff(t, st, true)
			execAll(t, st, change.do)
			execAll(t, st, on...)
			if p, _ := provedNew(t, st); p.Faults != 0 {
				t.Errorf("proved entries were read again: %+v", p)
			}
			p, _ := provedInParts(t, st)
			if p.Faults != 1 || p.Rule != "no entry that was proved has changed" {
				t.Errorf("%s: %+v", change.do, p)
			}
			faults, _, err := st.Verify(t.Context())
			if err != nil || len(faults) != 1 || faults[0].Rule != p.Rule {
				t.Errorf("%s: verify found %+v, %v", change.do, faults, err)
			}
			on = triggersOff(t, st, true)
			execAll(t, st, change.undo)
			execAll(t, st, on...)
			if p, _ := provedInParts(t, st); p.Faults != 0 {
				t.Errorf("mended: %+v", p)
			}
		}
		on := triggersOff(t, st, true)
		execAll(t, st, "DELETE FROM ledger_entries WHERE ref = 'fund:agt_2'")
		execAll(t, st, on...)
		execAll(t, st, "UPDATE wallets SET own = 0, entries = 0, credited = 0, adjusted = 0 WHERE agent_id = 'agt_2'")
		if p, _ := provedInParts(t, st); p.Faults != 1 || p.Rule != "no entry that was proved has changed" {
			t.Errorf("without its entry and its money: %+v", p)
		}
	})
}

// A complete proof that is past an agent does not clear what is found in its new entries meanwhile.
func TestAFaultThatACompleteProofPassedIsKept(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		if p, err := st.ProveNext(t.Context()); err != nil || p.StartedAt.IsZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		addAgent(t, st, "agt_0", domain.Dollar)
		balance := func(of int) {
			on := triggersOff(t, st, true)
			execAll(t, st, fmt.Sprintf("UPDATE ledger_entries SET balance_after = balance_after + %d WHERE agent_id = 'agt_0'", of))
			execAll(t, st, on...)
		}
		balance(7)
		if p, _ := provedNew(t, st); p.Faults != 1 {
			t.Errorf("a wrong balance: %+v", p)
		}
		if p, _ := provedInParts(t, st); p.Faults != 1 || !p.SucceededAt.Equal(now) {
			t.Errorf("after the proof that was past it: %+v", p)
		}
		balance(-7)
		if p, _ := provedInParts(t, st); p.Faults != 0 {
			t.Errorf("mended: %+v", p)
		}
	})
}
