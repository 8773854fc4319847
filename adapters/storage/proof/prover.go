package proof

import (
	"context"
	"fmt"
	"time"

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

// rule is one rule of the ledger: a query for the rows that break it, each with
// its name and what is wrong with it. The database walks the rows, so a long
// ledger takes no memory here.
type rule struct {
	name, broken string
}

// check is a rule as it is proved: of a range of agents, or of everything at once.
type check struct {
	rule
	byAgents bool
}

// day is a day in microseconds, hour an hour.
const (
	day  = "86400000000"
	hour = "3600000000"
)

// lastAgent is beyond the id of every agent.
const lastAgent = "\U0010FFFF"

// maxFaults bounds how many rows are listed that break one rule.
const maxFaults = 1000

// find adds the rows that break a rule to faults.
func find(ctx context.Context, conn engine.Conn, r rule, query string, args []any,
	faults []ports.Fault) ([]ports.Fault, error) {
	err := conn.Rows(ctx, fmt.Sprintf("%s LIMIT %d", query, maxFaults), args, func(rows engine.Row) error {
		f := ports.Fault{Rule: r.name}
		err := rows.Scan(&f.Where, &f.Detail)
		faults = append(faults, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", r.name, err)
	}
	return faults, nil
}

// write is a statement of a step, whose result is not needed.
type write struct {
	what, statement string
	args            []any
}

func run(u *work.Unit, writes []write) error {
	for _, w := range writes {
		if err := u.Later(w.what, w.statement, w.args...); err != nil {
			return err
		}
	}
	return nil
}

// proofName is the name under which the state of the proof is kept.
const proofName = "ledger-proof"

// left is the text of a rule that only whole proofs check: it compares kept sums with all rows that they are of.
const left = ""

// statuses are those of a session.
const statuses = "'creating', 'active', 'terminated', 'expired', 'failed'"

const dayMicros = 86_400_000_000

// late is how much later than it is due what the leader does each minute is a fault.
const late = time.Hour

// endOfMonth returns before when everything may be sealed.
func endOfMonth(now time.Time) time.Time {
	t := now.Add(-sealAfter).UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}
