// Package proof proves the ledger: it finds the rows that break a rule, at once or in parts, and keeps
// a digest of the entries that are proved, by which it finds one that was changed since.
package proof

import (
	"context"
	"encoding/json"
	"fmt"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// Rules returns the names of the rules that Verify checks.
func (p *Prover) Rules() (names []string) {
	for _, r := range p.checks() {
		names = append(names, r.name)
	}
	return append(append(names, walkRules...), guarded, actionsStay, accountSums, marginSums, orderSums,
		deliverySums)
}

// Proof returns the result that any process has stored.
func (p *Prover) Proof(ctx context.Context) (ports.Proof, error) {
	var state proofState
	err := p.db.Read(ctx, func(u *work.Unit) (err error) {
		state, _, err = readState(u)
		return err
	})
	return state.result(), err
}

// ProveNext proves the next range of agents or the next of the other rules, on a snapshot of its own,
// and stores how far it came. Whichever process calls it next goes on from there.
func (p *Prover) ProveNext(ctx context.Context) (ports.Proof, error) {
	return p.prove(ctx, func(conn engine.Conn, state *proofState) ([]write, error) {
		if state.StartedAt.IsZero() {
			p.start(state)
		}
		return p.proveNext(ctx, conn, state)
	})
}

// start begins a proof: of everything, if sealed months were not proved for long, another month is over or the
// last proof found a fault, else of what is in no sealed month.
func (p *Prover) start(state *proofState) {
	now := p.clock.Now()
	state.StartedAt, state.New.Again, state.Seals, state.Month = now, false, 0, p.bounds.Seal(now)
	state.Whole = state.Sealed.IsZero() || state.Month.After(state.Sealed) || state.ProvedFaults > 0 ||
		now.Sub(state.WholeAt).Abs() >= wholeEvery
	if state.Month.Before(state.Sealed) { // the clock went back
		state.Month = state.Sealed
	}
}

// prove takes one step on a snapshot and stores what it returns, and the state after it.
func (p *Prover) prove(
	ctx context.Context, step func(engine.Conn, *proofState) ([]write, error),
) (ports.Proof, error) {
	var state proofState
	var before []byte
	err := p.db.Read(ctx, func(u *work.Unit) (err error) {
		state, before, err = readState(u)
		return err
	})
	if err != nil {
		return ports.Proof{}, err
	}
	var writes []write
	err = p.db.Audit(ctx, func(conn engine.Conn) (err error) {
		writes, err = step(conn, &state)
		return err
	})
	if err != nil {
		return ports.Proof{}, fmt.Errorf("prove the ledger: %w", err)
	}
	text, err := json.Marshal(state)
	if err != nil {
		return ports.Proof{}, fmt.Errorf("prove the ledger: %w", err)
	}
	for len(writes) > sealRows {
		if err := p.db.Update(ctx, func(u *work.Unit) error { return run(u, writes[:sealRows]) }); err != nil {
			return ports.Proof{}, err
		}
		writes = writes[sealRows:]
	}
	err = p.db.Update(ctx, func(u *work.Unit) error {
		if err := run(u, writes); err != nil { // should two processes prove at once, both are right
			return err
		}
		// Should two processes prove at once, one of them counts.
		if before == nil {
			return u.Later("store the proof of the ledger",
				"INSERT INTO service_values (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING", proofName, text)
		}
		return u.Later("store the proof of the ledger",
			"UPDATE service_values SET value = ?2 WHERE name = ?1 AND value = ?3", proofName, text, before)
	})
	return state.result(), err
}

// proveRange proves the next range of agents, and seals its months if nothing is wrong with it.
func (p *Prover) proveRange(ctx context.Context, conn engine.Conn, state *proofState) ([]write, error) {
	r := reading{from: state.Agent, month: state.month(), survey: newSurvey()}
	entries, err := p.nextRange(ctx, conn, &r)
	if err != nil {
		return nil, err
	}
	if r.due, err = p.dueOf(conn, state); err != nil {
		return nil, err
	}
	if state.Whole {
		r.sealing = &sealing{month: column.Micros(state.Month), agents: map[string]sealRow{}}
	}
	faults, _, err := p.follow(ctx, conn, r)
	if err != nil {
		return nil, err
	}
	more, err := p.findIn(ctx, conn, r)
	if err != nil {
		return nil, err
	}
	faults = append(faults, more...)
	var writes []write
	if r.sealing != nil && len(faults) == 0 {
		state.Seals += len(r.sealing.agents)
		if writes, faults, err = p.seals(ctx, conn, r, state); err != nil {
			return nil, err
		}
	}
	state.add(faults)
	state.Agent, state.Entries = r.to, state.Entries+entries
	return writes, nil
}

// proveNext takes one step of a proof.
func (p *Prover) proveNext(ctx context.Context, conn engine.Conn, state *proofState) ([]write, error) {
	if state.Agent != lastAgent {
		return p.proveRange(ctx, conn, state)
	}
	checks := p.checks()
	for state.Check < len(checks) && checks[state.Check].byAgents {
		state.Check++
	}
	if state.Check < len(checks) {
		c := checks[state.Check]
		faults, err := find(ctx, conn, c.rule, c.broken, nil, nil)
		state.add(faults)
		state.Check++
		return nil, err
	}
	faults, err := p.findOthers(ctx, conn, state)
	state.add(faults)
	if err != nil {
		return nil, err
	}
	state.end(p.clock.Now())
	return nil, nil
}
