// Package proof proves the ledger: it finds the rows that break a rule, at once or in parts, and keeps
// a digest of the entries that are proved, by which it finds one that was changed since.
package proof

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// Database runs what a proof reads and writes.
type Database interface {
	work.Units
	// Audit runs fn on a snapshot that may last long.
	Audit(ctx context.Context, fn func(engine.Conn) error) error
}

// Bounds are those of one step of a proof.
type Bounds struct {
	// Entries and Agents end a range of agents, with the agent that reaches one of them.
	Entries int64
	Agents  int
	// New is how many entries a call of ProveNew looks at, and about how many it proves.
	New int64
	// Seal returns before when everything may be sealed at a time.
	Seal func(now time.Time) time.Time
}

// Usual are the bounds of a service.
var Usual = Bounds{Entries: 50_000, Agents: 5_000, New: 10_000, Seal: endOfMonth}

// Prover implements ports.Audit on a database.
type Prover struct {
	db       Database
	clock    ports.Clock
	postgres bool
	bounds   Bounds
}

// New returns the Prover of a database, PostgreSQL or SQLite.
func New(db Database, clock ports.Clock, postgres bool, bounds Bounds) *Prover {
	return &Prover{db: db, clock: clock, postgres: postgres, bounds: bounds}
}

// Rules returns the names of the rules that Verify checks.
func (p *Prover) Rules() (names []string) {
	for _, r := range p.checks() {
		names = append(names, r.name)
	}
	return append(append(names, walkRules...), guarded, actionsStay, accountSums, marginSums, orderSums,
		deliverySums)
}

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

	Whole   bool      `json:"whole"`    // the proof that runs reads sealed months too,
	Month   time.Time `json:"month"`    // and seals what is before it
	Seals   int       `json:"seals"`    // how many it has written or found
	Sealed  time.Time `json:"sealed"`   // the seals of before then are in use; zero: none
	WholeAt time.Time `json:"whole_at"` // when the last whole proof without a fault ended

	New newProofState `json:"new"`

	stored bool // in the database
}

// result returns what is known now: faults of the proof that runs count at once.
func (p proofState) result() ports.Proof {
	r := ports.Proof{At: p.ProvedAt, Entries: p.ProvedEntries, Faults: p.ProvedFaults, Rule: p.ProvedRule,
		StartedAt: p.StartedAt, SucceededAt: p.SucceededAt, Took: p.Took, NewAt: p.New.At, Head: p.New.Head,
		Sealed: p.Sealed, WholeAt: p.WholeAt}
	if p.Faults > r.Faults {
		r.Faults, r.Rule = p.Faults, p.Rule
	}
	if p.New.Faults > r.Faults {
		r.Faults, r.Rule = p.New.Faults, p.New.Rule
	}
	if !p.New.Lost.IsZero() && r.Faults == 0 {
		r.Faults, r.Rule = 1, oldProved
	}
	return r
}

func readState(u *work.Unit) (proofState, []byte, error) { return stateOf(u.Conn) }

func stateOf(conn engine.Conn) (p proofState, text []byte, err error) {
	err = conn.Row("SELECT value FROM service_values WHERE name = ?1", []any{proofName}).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
		p.stored = true
	}
	if err != nil {
		err = fmt.Errorf("read the state of the proof: %w", err)
	}
	return p, text, err
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

// month returns before when the months are sealed that a proof leaves out; 0 if it reads everything.
func (p *proofState) month() int64 {
	if p.Whole || p.Sealed.IsZero() {
		return 0
	}
	return column.Micros(p.Sealed)
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

func run(u *work.Unit, writes []write) error {
	for _, w := range writes {
		if err := u.Later(w.what, w.statement, w.args...); err != nil {
			return err
		}
	}
	return nil
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

// end ends a proof. It may have read an agent before a new entry of that was found wrong: what was found
// since it began stays known until the next one.
func (p *proofState) end(now time.Time) {
	ended := proofState{ProvedAt: now, ProvedEntries: p.Entries, ProvedFaults: p.Faults, ProvedRule: p.Rule,
		SucceededAt: p.SucceededAt, Took: now.Sub(p.StartedAt), Sealed: p.Sealed, WholeAt: p.WholeAt, New: p.New,
		stored: p.stored}
	if p.Faults == 0 {
		ended.SucceededAt = now
		if p.Whole {
			ended.WholeAt = now
			if p.Seals > 0 {
				ended.Sealed = p.Month
			}
		}
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
