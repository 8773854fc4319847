package proof

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// proofRow is a row of ledger_proofs: the sums and the digest of the first entries of an agent.
type proofRow struct {
	AgentID                      string
	Entries                      int64
	Trial, Own                   int64
	HeldTrial, HeldOwn           int64
	Charged, Refunded, Recharged int64
	Digest                       string // hexadecimal; empty before the first entry
}

// entry is what is proved of a row of ledger_entries. A digest holds all of it. Its fields have the types of drivers:
// others are converted by reflection, in each of millions of rows.
type entry struct {
	ID           string
	AgentID      string
	Ord          int64
	Type         string
	Trial        int64
	Own          int64
	HeldTrial    int64
	HeldOwn      int64
	Account      string
	Counter      int64
	Ref          string
	SessionID    string
	OrderID      string
	Description  string
	At           int64
	BalanceAfter int64
}

var (
	proofColumns = column.Names(new(proofRow))
	putProof     = "INSERT INTO ledger_proofs (" + strings.Join(proofColumns, ", ") + ") VALUES (" +
		work.Placeholders(1, len(proofColumns)) + ") ON CONFLICT (agent_id) DO UPDATE SET (" +
		strings.Join(proofColumns[1:], ", ") + ") = (excluded." + strings.Join(proofColumns[1:], ", excluded.") +
		") WHERE excluded.entries > ledger_proofs.entries"

	// entrySelect reads the seq of an entry after its columns.
	entrySelect = "SELECT " + strings.Join(column.Names(new(entry)), ", ") + ", seq FROM ledger_entries WHERE "
)

// movesByType reports whether an entry moves what its type moves.
func (e *entry) movesByType() bool {
	free, held := e.Trial == 0 && e.Own == 0, e.HeldTrial == 0 && e.HeldOwn == 0
	toHeld := e.Trial == -e.HeldTrial && e.Own == -e.HeldOwn
	account := billing.Account(e.Account)
	switch billing.Type(e.Type) {
	case billing.TrialGrant:
		return account == billing.TrialGrants && e.Trial >= 0 && e.Own == 0 && held
	case billing.Recharge:
		return account == billing.USDT && e.Trial == 0 && e.Own >= 0 && held
	case billing.HoldEntry:
		return account == billing.NoAccount && e.HeldTrial >= 0 && e.HeldOwn >= 0 && toHeld
	case billing.ChargeEntry:
		return account == billing.Revenue && free && e.HeldTrial <= 0 && e.HeldOwn <= 0
	case billing.Release:
		return account == billing.NoAccount && e.HeldTrial <= 0 && e.HeldOwn <= 0 && toHeld
	case billing.RefundEntry:
		return account == billing.Revenue && e.Trial >= 0 && e.Own >= 0 && held
	case billing.TrialExpiry:
		return account == billing.TrialExpired && e.Trial <= 0 && e.Own == 0 && held
	case billing.Adjustment:
		return account == billing.Corrections && held
	}
	return false
}

// chain follows the entries of one agent.
type chain struct {
	proofRow
	digest [sha256.Size]byte
	buffer []byte
}

// newChain goes on after what is proved.
func newChain(from proofRow) (*chain, error) {
	c := &chain{proofRow: from}
	if from.Digest == "" {
		return c, nil
	}
	digest, err := hex.DecodeString(from.Digest)
	if err != nil || len(digest) != len(c.digest) {
		return nil, fmt.Errorf("the stored digest of %s is damaged", from.AgentID)
	}
	copy(c.digest[:], digest)
	return c, nil
}

// add takes the next entry.
func (c *chain) add(e *entry) {
	b := append(c.buffer[:0], c.digest[:]...)
	for _, text := range [...]string{e.ID, e.AgentID, e.Type, e.Account, e.Ref, e.SessionID, e.OrderID,
		e.Description} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	for _, n := range [...]int64{e.Ord, e.Trial, e.Own, e.HeldTrial, e.HeldOwn,
		e.Counter, e.At, e.BalanceAfter} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	c.buffer, c.digest = b, sha256.Sum256(b)
	c.Entries++
	c.Trial, c.Own = c.Trial+e.Trial, c.Own+e.Own
	c.HeldTrial, c.HeldOwn = c.HeldTrial+e.HeldTrial, c.HeldOwn+e.HeldOwn
	switch billing.Type(e.Type) {
	case billing.ChargeEntry:
		c.Charged += e.Counter
	case billing.RefundEntry:
		c.Refunded += e.Trial + e.Own
	case billing.Recharge:
		c.Recharged += e.Trial + e.Own
	}
}

// row returns how far the chain has come.
func (c *chain) row() proofRow {
	c.Digest = hex.EncodeToString(c.digest[:])
	return c.proofRow
}

// check returns what is wrong with the entry that was added last; the zero Fault if nothing is.
func (c *chain) check(e *entry) (f ports.Fault) {
	switch {
	case e.Ord != c.Entries:
		return ports.Fault{Rule: noneMissing, Where: e.AgentID,
			Detail: fmt.Sprintf("entry %d is where entry %d should be", e.Ord, c.Entries)}
	case e.Trial+e.Own+e.HeldTrial+e.HeldOwn+e.Counter != 0:
		return ports.Fault{Rule: sumsToZero, Where: e.ID, Detail: "it does not"}
	case e.BalanceAfter != c.Trial+c.Own:
		return ports.Fault{Rule: balanceAfter, Where: e.ID,
			Detail: fmt.Sprintf("balance %d; sum %d", e.BalanceAfter, c.Trial+c.Own)}
	}
	return f
}

// compare returns how a wallet differs from the entries, all of which were added; the zero Fault if it does not.
func (c *chain) compare(w proofRow) (f ports.Fault) {
	sums := c.proofRow
	sums.Digest = w.Digest
	switch {
	case sums == w:
		return f
	case c.Entries != w.Entries:
		return ports.Fault{Rule: noneMissing, Where: w.AgentID,
			Detail: fmt.Sprintf("wallet %d; entries %d", w.Entries, c.Entries)}
	}
	return ports.Fault{Rule: walletSums, Where: w.AgentID,
		Detail: fmt.Sprintf("wallet %d, %d, %d, %d, charged %d, refunded %d, recharged %d; entries %d, %d, %d, %d, "+
			"charged %d, refunded %d, recharged %d", w.Trial, w.Own, w.HeldTrial, w.HeldOwn, w.Charged, w.Refunded, w.Recharged,
			c.Trial, c.Own, c.HeldTrial, c.HeldOwn, c.Charged, c.Refunded, c.Recharged)}
}
