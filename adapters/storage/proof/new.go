package proof

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// newProofState is how far new entries are proved. Entries get their seq before they are committed, so a
// round reads once more which agents had an entry in the round before: by then, what was under way has
// ended. An agent whose entries are all proved costs a look at its wallet.
type newProofState struct {
	Mark   int64     `json:"mark"`   // the agents of the entries up to this seq are proved
	Before int64     `json:"before"` // the last seq of the round before
	At     time.Time `json:"at"`     // when a round last ended and nothing was wrong
	Faults int       `json:"faults"` // until a complete proof that began later finds none
	Rule   string    `json:"rule"`
	Again  bool      `json:"again"` // whether one was found since the complete proof that runs began
}

// ProveNew proves the agents of the next entries, from the entry on up to which each is proved.
func (p *Prover) ProveNew(ctx context.Context) (found ports.Proof, more bool, err error) {
	found, err = p.prove(ctx, func(conn engine.Conn, state *proofState) (rows []proofRow, err error) {
		rows, more, err = proveNew(ctx, conn, &state.New, p.bounds.New, p.clock.Now())
		return rows, err
	})
	return found, more, err
}

func proveNew(
	ctx context.Context, conn engine.Conn, p *newProofState, most int64, now time.Time,
) (rows []proofRow, more bool, err error) {
	var last int64
	if err := conn.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries", nil).Scan(&last); err != nil {
		return nil, false, fmt.Errorf("find new entries: %w", err)
	}
	if last < p.Mark { // as after a restore of an older copy
		p.Mark, p.Before = 0, 0
	}
	upTo := min(last, p.Mark+most)
	due, err := dueProofs(ctx, conn, p.Mark, upTo)
	if err != nil {
		return nil, false, err
	}
	wrong := 0
	for left := most; len(due) > 0; due = due[1:] {
		row, fault, err := proveAgent(ctx, conn, due[0], left)
		if err != nil {
			return nil, false, err
		}
		if fault.Rule != "" {
			wrong++
			p.Faults, p.Rule, p.Again = max(p.Faults, wrong), fault.Rule, true
			continue
		}
		rows = append(rows, row)
		if left -= row.Entries - due[0].proved.Entries; left <= 0 {
			return rows, true, nil
		}
	}
	if p.Mark = upTo; upTo < last {
		return rows, true, nil
	}
	p.Mark, p.Before = p.Before, last
	if p.Faults == 0 {
		p.At = now
	}
	return rows, false, nil
}

// dueProof is an agent with entries that are not proved.
type dueProof struct{ wallet, proved proofRow }

// dueProofs returns the agents that have an entry with a seq beyond from up to another, and entries that
// are not proved.
func dueProofs(ctx context.Context, conn engine.Conn, from, to int64) (due []dueProof, err error) {
	sums := proofColumns[1 : len(proofColumns)-1]
	query := "SELECT w.agent_id, w." + strings.Join(sums, ", w.") +
		", COALESCE(p." + strings.Join(sums, ", 0), COALESCE(p.") + ", 0), COALESCE(p.digest, '')" +
		` FROM wallets w LEFT JOIN ledger_proofs p ON p.agent_id = w.agent_id WHERE w.agent_id IN
		(SELECT agent_id FROM ledger_entries WHERE seq > ?1 AND seq <= ?2)
		AND w.entries <> COALESCE(p.entries, 0) ORDER BY w.agent_id`
	var d dueProof
	wallet, proved := column.Targets(&d.wallet), column.Targets(&d.proved)
	into := append(wallet[:len(wallet)-1:len(wallet)-1], proved[1:]...)
	err = conn.Rows(ctx, query, []any{from, to}, func(row engine.Row) error {
		err := row.Scan(into...)
		d.proved.AgentID = d.wallet.AgentID
		due = append(due, d)
		return err
	})
	return due, work.Wrap("find new entries", err)
}

// proveAgent proves up to a number of entries of an agent, and its wallet once it comes to the last. It
// returns how far it came, or the first fault.
func proveAgent(ctx context.Context, conn engine.Conn, d dueProof, limit int64) (proofRow, ports.Fault, error) {
	c, err := newChain(d.proved)
	if err != nil {
		return proofRow{}, ports.Fault{}, err
	}
	var e entry
	var fault ports.Fault
	into := column.Targets(&e)
	err = conn.Rows(ctx, entrySelect+"agent_id = ?1 AND ord > ?2 ORDER BY ord LIMIT ?3",
		[]any{d.wallet.AgentID, c.Entries, limit}, func(row engine.Row) error {
			err := row.Scan(into...)
			if err == nil && fault.Rule == "" {
				c.add(&e)
				fault = c.check(&e)
			}
			return err
		})
	all := c.Entries >= d.wallet.Entries || c.Entries-d.proved.Entries < limit
	if err == nil && fault.Rule == "" && all {
		fault = c.compare(d.wallet)
	}
	return c.row(), fault, work.Wrap("prove the entries of "+d.wallet.AgentID, err)
}
