//go:build campaign

package storage_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
)

var proofEntries = flag.Int("proof.entries", 10_000_000, "entries of the ledger that is proved")

// mostProofMemory is what a proof may add to the memory of the process.
const mostProofMemory = 256 << 20

// A long ledger, a tenth of it of one agent, is proved in bounded memory, in one piece and in parts.
func TestTheProofOfALongLedgerTakesBoundedMemory(t *testing.T) {
	const agents = 1000
	storage.SetProofRanges(50_000, 5_000)
	t.Cleanup(func() { storage.SetProofRanges(1, 1) })
	st := openStore(t)
	began := time.Now()
	each := *proofEntries * 9 / 10 / agents
	for n := range agents + 1 {
		id, entries := fmt.Sprintf("agt_%06d", n), each
		if n == agents {
			entries = *proofEntries - agents*each
		}
		addAgent(t, st, id, domain.Dollar)
		for _, statement := range []string{
			`INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own, account, counter, ref,
				session_id, order_id, description, at, balance_after)
			WITH RECURSIVE k(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < ?2)
			SELECT 'txn_' || ?1 || printf('_%08d', n), ?1, n, 'adjustment', 0, 1, 0, 0, 'corrections', -1,
				'adjust:' || ?1 || printf('_%08d', n), '', '', 'a correction', 1, 1000000 + n - 1 FROM k`,
			`UPDATE wallets SET own = own + ?2 - 1, adjusted = adjusted + ?2 - 1, entries = ?2 WHERE agent_id = ?1`,
		} {
			if _, err := st.Writer().Exec(statement, id, entries); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d entries written in %s", *proofEntries, time.Since(began).Round(time.Second))
	for _, prove := range []struct {
		name string
		run  func() (faults, entries int)
	}{
		{"verify", func() (int, int) {
			faults, entries, err := st.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(faults), entries
		}},
		{"the proof of new entries", func() (int, int) {
			p, calls := provedNew(t, st)
			var entries int
			if err := st.Writer().QueryRow("SELECT SUM(entries) FROM ledger_proofs").Scan(&entries); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls", calls)
			return p.Faults, entries
		}},
		{"the proof in parts", func() (int, int) {
			p, parts := provedInParts(t, st)
			t.Logf("%d parts", parts)
			return p.Faults, int(p.Entries)
		}},
	} {
		before, began := residentMemory(t), time.Now()
		peak, stop, sampled := before, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sampled)
			for {
				peak = max(peak, residentMemory(t))
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		faults, entries := prove.run()
		close(stop)
		<-sampled
		t.Logf("%s: %d entries in %s, memory %d MiB before and %d MiB at most", prove.name, entries,
			time.Since(began).Round(100*time.Millisecond), before>>20, peak>>20)
		if faults != 0 || entries != *proofEntries || peak-before > mostProofMemory {
			t.Errorf("%d faults, %d entries, %d MiB more", faults, entries, (peak-before)>>20)
		}
	}
}

var anonymous = regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

// residentMemory returns the resident memory of the process in bytes, without the pages of mapped files: SQLite
// maps the database, and the kernel takes those pages back when it needs them.
func residentMemory(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Error(err)
		return 0
	}
	found := anonymous.FindSubmatch(text)
	if found == nil {
		t.Errorf("no resident memory in %s", text)
		return 0
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n << 10
}
