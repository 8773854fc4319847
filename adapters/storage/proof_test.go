package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
)

// Every test of this package proves the ledger agent by agent.
func init() { storage.SetProofRanges(1, 1) }

// provedInParts runs a proof to its end and returns how many parts it had.
func provedInParts(t *testing.T, st *storage.Store) (p ports.Proof, parts int) {
	t.Helper()
	for parts = 1; ; parts++ {
		p, err := st.ProveNext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.StartedAt.IsZero() {
			return p, parts
		}
	}
}

func storedProof(t *testing.T, st *storage.Store) ports.Proof {
	t.Helper()
	p, err := st.Proof(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAProofRunsInPartsAndIsStored(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		if p := storedProof(t, st); p != (ports.Proof{}) {
			t.Errorf("before the first proof: %+v", p)
		}
		faults, entries, err := st.Verify(t.Context())
		if err != nil || len(faults) > 0 {
			t.Fatal(faults, err)
		}
		p, parts := provedInParts(t, st)
		if p.Faults != 0 || p.Entries != int64(entries) || !p.At.Equal(now) || parts < 5 || storedProof(t, st) != p {
			t.Errorf("%d entries; the proof in %d parts: %+v, stored %+v", entries, parts, p, storedProof(t, st))
		}

		// What breaks meanwhile shows before the proof is complete, and until one succeeds.
		if _, err := st.ProveNext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Writer().Exec(`UPDATE wallets SET own = own + 1 WHERE agent_id = 'agt_2'`); err != nil {
			t.Fatal(err)
		}
		for shown := false; ; {
			p, err := st.ProveNext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p.StartedAt.IsZero() {
				if !shown || p.Faults == 0 || p.Rule == "" {
					t.Errorf("shown before its end: %v; the proof %+v", shown, p)
				}
				break
			}
			shown = shown || p.Faults > 0
		}
		if _, err := st.Writer().Exec(`UPDATE wallets SET own = own - 1 WHERE agent_id = 'agt_2'`); err != nil {
			t.Fatal(err)
		}
		if _, err := st.ProveNext(t.Context()); err != nil || storedProof(t, st).Faults == 0 {
			t.Errorf("the faults of the last proof are gone before the next is complete: %v", err)
		}
		if p, _ := provedInParts(t, st); p.Faults != 0 || p.Rule != "" {
			t.Errorf("mended, the proof is %+v", p)
		}
	})
}

// A proof goes on in another process where the first stopped, and each shows its result.
func TestAnotherProcessGoesOnWithAProof(t *testing.T) {
	st := openBooks(t, openPostgres)
	other, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(st.Pool().Config().ConnString()),
		Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	_, all := provedInParts(t, st)
	for range all - 1 {
		if _, err := st.ProveNext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p, rest := provedInParts(t, other)
	if rest != 1 || storedProof(t, st) != p {
		t.Errorf("%d parts were left of %d; one shows %+v, the other %+v", rest, all, storedProof(t, st), p)
	}
}

// Rows of agents without a wallet lie between the ranges of those with one.
func TestRangesOfAgentsCoverEverything(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		for n := range 5 {
			addAgent(t, st, fmt.Sprintf("agt_%d", n*2), domain.Dollar)
		}
		for _, agent := range []string{"aaa", "agt_3", "zzz"} {
			_, err := st.Writer().Exec(fmt.Sprintf(`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own,
				account, counter, ref, session_id, order_id, description, at, balance_after)
				VALUES ('txn_%s', '%[1]s', 1, 'adjustment', 0, 1, 0, 0, 'corrections', -1, 'x:%[1]s', '', '', '', 1, 1)`, agent))
			if err != nil {
				t.Fatal(err)
			}
		}
		faults, _, err := st.Verify(context.Background())
		if err != nil || len(faults) != 3 {
			t.Errorf("%d faults, want 3: %+v, %v", len(faults), faults, err)
		}
	})
}

// A snapshot of Verify is of one range of agents or of one rule, so that none lasts as long as the whole.
func TestVerifyTakesASnapshotForEachRange(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		taken := func() int {
			t.Helper()
			p, snapshots := st.CountingProver()
			if faults, _, err := p.Verify(t.Context()); err != nil || len(faults) > 0 {
				t.Errorf("%+v, %v", faults, err)
			}
			return snapshots()
		}
		before := taken()
		const agents = 7
		for n := range agents {
			addAgent(t, st, fmt.Sprintf("agt_%d", n), domain.Dollar)
		}
		if more := taken() - before; more != agents-1 { // of a new store the first range has none
			t.Errorf("%d snapshots more for %d agents", more, agents)
		}
	})
}
