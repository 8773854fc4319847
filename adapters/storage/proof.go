package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// proofName is the name under which the state of the proof is kept.
const proofName = "ledger-proof"

// proofState is how far the proof has come that runs, and what the last one found.
type proofState struct {
	StartedAt time.Time `json:"started_at"` // zero: none runs
	Agent     string    `json:"agent"`      // the first agent that is not proved yet
	Check     int       `json:"check"`      // the first of the other rules that is not, once all agents are
	Entries   int64     `json:"entries"`
	Faults    int       `json:"faults"`
	Rule      string    `json:"rule"` // of the first fault

	ProvedAt      time.Time `json:"proved_at"` // when the last proof ended
	ProvedEntries int64     `json:"proved_entries"`
	ProvedFaults  int       `json:"proved_faults"`
	ProvedRule    string    `json:"proved_rule"`

	SucceededAt time.Time     `json:"succeeded_at"` // when the last proof without a fault ended
	Took        time.Duration `json:"took"`         // by the last proof, with its pauses

	New newProofState `json:"new"`
}

// result returns what is known now: faults of the proof that runs count at once.
func (p proofState) result() ports.Proof {
	r := ports.Proof{At: p.ProvedAt, Entries: p.ProvedEntries, Faults: p.ProvedFaults, Rule: p.ProvedRule,
		StartedAt: p.StartedAt, SucceededAt: p.SucceededAt, Took: p.Took, NewAt: p.New.At}
	if p.Faults > r.Faults {
		r.Faults, r.Rule = p.Faults, p.Rule
	}
	if p.New.Faults > r.Faults {
		r.Faults, r.Rule = p.New.Faults, p.New.Rule
	}
	return r
}

func readProof(t *tx) (p proofState, text []byte, err error) {
	err = t.Row("SELECT value FROM service_values WHERE name = ?1", proofName).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		err = fmt.Errorf("read the state of the proof: %w", err)
	}
	return p, text, err
}

// Proof returns the result that any process has stored.
func (s *Store) Proof(ctx context.Context) (ports.Proof, error) {
	var p proofState
	err := s.Read(ctx, func(_ context.Context, unit ports.Tx) (err error) {
		p, _, err = readProof(unit.(*tx))
		return err
	})
	return p.result(), err
}

// ProveNext proves the next range of agents or the next of the other rules, on a snapshot of its own,
// and stores how far it came. Whichever process calls it next goes on from there.
func (s *Store) ProveNext(ctx context.Context) (ports.Proof, error) {
	return s.prove(ctx, func(conn engine.Conn, p *proofState) ([]proofRow, error) {
		if p.StartedAt.IsZero() {
			p.StartedAt, p.New.Again = s.clock.Now(), false
		}
		return nil, s.proveNext(ctx, conn, p)
	})
}

// prove takes one step on a snapshot and stores the state after it, with the rows of ledger_proofs that
// the step returns.
func (s *Store) prove(
	ctx context.Context, step func(engine.Conn, *proofState) ([]proofRow, error),
) (ports.Proof, error) {
	var p proofState
	var before []byte
	err := s.Read(ctx, func(_ context.Context, unit ports.Tx) (err error) {
		p, before, err = readProof(unit.(*tx))
		return err
	})
	if err != nil {
		return ports.Proof{}, err
	}
	var rows []proofRow
	err = s.database.Audit(ctx, func(conn engine.Conn) (err error) {
		rows, err = step(conn, &p)
		return err
	})
	if err != nil {
		return ports.Proof{}, fmt.Errorf("prove the ledger: %w", err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return ports.Proof{}, fmt.Errorf("prove the ledger: %w", err)
	}
	err = s.Update(ctx, func(_ context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		for _, row := range rows { // should two processes prove at once, both are right
			if err := t.Later("store how far the ledger is proved", putProof, column.Values(&row)...); err != nil {
				return err
			}
		}
		// Should two processes prove at once, one of them counts.
		if before == nil {
			return t.Later("store the proof of the ledger",
				"INSERT INTO service_values (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING", proofName, text)
		}
		return t.Later("store the proof of the ledger",
			"UPDATE service_values SET value = ?2 WHERE name = ?1 AND value = ?3", proofName, text, before)
	})
	return p.result(), err
}

// proveNext takes one step of a proof.
func (s *Store) proveNext(ctx context.Context, conn engine.Conn, p *proofState) error {
	if p.Agent != lastAgent {
		to, entries, err := nextRange(ctx, conn, p.Agent)
		if err != nil {
			return err
		}
		faults, err := s.findIn(ctx, conn, p.Agent, to)
		p.add(faults)
		if err != nil {
			return err
		}
		faults, err = findChanged(ctx, conn, p.Agent, to)
		p.add(faults)
		p.Agent, p.Entries = to, p.Entries+entries
		return err
	}
	checks := s.checks()
	for p.Check < len(checks) && checks[p.Check].byAgents {
		p.Check++
	}
	if p.Check < len(checks) {
		c := checks[p.Check]
		faults, err := find(ctx, conn, c.rule, c.broken, nil, nil)
		p.add(faults)
		p.Check++
		return err
	}
	p.end(s.clock.Now())
	return nil
}

// end ends a proof. It may have read an agent before a new entry of that was found wrong: what was found
// since it began stays known until the next one.
func (p *proofState) end(now time.Time) {
	ended := proofState{ProvedAt: now, ProvedEntries: p.Entries, ProvedFaults: p.Faults, ProvedRule: p.Rule,
		SucceededAt: p.SucceededAt, Took: now.Sub(p.StartedAt), New: p.New}
	if p.Faults == 0 {
		ended.SucceededAt = now
		if !p.New.Again {
			ended.New.Faults, ended.New.Rule = 0, ""
		}
	}
	*p = ended
}

func (p *proofState) add(faults []ports.Fault) {
	if len(faults) > 0 && p.Rule == "" {
		p.Rule = faults[0].Rule
	}
	p.Faults += len(faults)
}
