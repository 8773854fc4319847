package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// pastStays is the name of the rule by which entries stay as they were when a head of their digests was
// published.
const pastStays = "the past is that of its published head"

// headSum computes the head of the digests of all agents, in the order of their ids.
type headSum struct {
	hash.Hash
	buffer  []byte
	entries int64
}

func newHeadSum() *headSum { return &headSum{Hash: sha256.New()} }

// add takes the first entries of the next agent.
func (s *headSum) add(agent string, entries int64, digest []byte) {
	b := binary.BigEndian.AppendUint32(s.buffer[:0], uint32(len(agent)))
	b = append(b, agent...)
	b = binary.BigEndian.AppendUint64(b, uint64(entries))
	s.buffer = append(b, digest...)
	s.Write(s.buffer) // never fails
	s.entries += entries
}

// published returns the head of the entries up to a seq, all of which are proved and no others. It returns
// false if that is not so, as after two processes proved at once.
func published(ctx context.Context, conn engine.Conn, seq int64) (head ports.ProofHead, ok bool, err error) {
	sum := newHeadSum()
	query := "SELECT " + strings.Join(proofColumns, ", ") + " FROM ledger_proofs ORDER BY agent_id"
	var p proofRow
	into := column.Targets(&p)
	err = conn.Rows(ctx, query, nil, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		digest, err := hex.DecodeString(p.Digest)
		if err != nil {
			return nil // the complete proof names it, and the sum of the entries is too small
		}
		sum.add(p.AgentID, p.Entries, digest)
		return nil
	})
	if err != nil {
		return head, false, fmt.Errorf("compute the head of the digests: %w", err)
	}
	var entries int64
	if err := conn.Row("SELECT COUNT(*) FROM ledger_entries WHERE seq <= ?1", []any{seq}).Scan(&entries); err != nil {
		return head, false, fmt.Errorf("count what the head is of: %w", err)
	}
	head = ports.ProofHead{Seq: seq, Entries: entries, Head: hex.EncodeToString(sum.Sum(nil))}
	return head, entries == sum.entries && entries > 0, nil
}

// heads computes again the heads that were published, while the entries are walked. A nil one has none.
type heads struct {
	published []ports.ProofHead // by seq
	sums      []*headSum
	next      int // the first head that the next entry of the agent may be in
}

func newHeads(published []ports.ProofHead) *heads {
	if len(published) == 0 {
		return nil
	}
	h := &heads{published: slices.Clone(published)}
	slices.SortFunc(h.published, func(a, b ports.ProofHead) int { return int(min(max(a.Seq-b.Seq, -1), 1)) })
	for range h.published {
		h.sums = append(h.sums, newHeadSum())
	}
	return h
}

// begin begins another agent.
func (h *heads) begin() {
	if h != nil {
		h.next = 0
	}
}

// before gives the chain of an agent, before its entry of a seq is added, to the heads that are older.
func (h *heads) before(c *chain, seq int64) {
	for h != nil && h.next < len(h.published) && h.published[h.next].Seq < seq {
		h.take(c)
	}
}

// end gives the chain of an agent to the other heads.
func (h *heads) end(c *chain) {
	for h != nil && h.next < len(h.published) {
		h.take(c)
	}
}

func (h *heads) take(c *chain) {
	if c.Entries > 0 {
		h.sums[h.next].add(c.AgentID, c.Entries, c.digest[:])
	}
	h.next++
}

// compare returns the heads that are not what they were.
func (h *heads) compare() (faults []ports.Fault) {
	if h == nil {
		return nil
	}
	for i, p := range h.published {
		sum := h.sums[i]
		if is := hex.EncodeToString(sum.Sum(nil)); is != p.Head || sum.entries != p.Entries {
			faults = append(faults, ports.Fault{Rule: pastStays, Where: fmt.Sprint("seq ", p.Seq),
				Detail: fmt.Sprintf("%d entries with the head %s; there were %d with %s", sum.entries, is, p.Entries, p.Head)})
		}
	}
	return faults
}
