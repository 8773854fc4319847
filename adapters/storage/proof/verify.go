package proof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

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

// checks returns the rules of the ledger and of what it is about. Those of the tables that grow with
// every entry are proved by ranges of agents, in which the database sorts and sums a bounded number of
// rows; what they compare never belongs to two agents.
func (p *Prover) checks() []check {
	var all []check
	for _, r := range slices.Concat(ledgerRules, sessionRules, soldRules, countRules) {
		all = append(all, check{r, true})
	}
	for _, r := range slices.Concat(placeRules(p.postgres), rechargeRules, orderRules, accountRules) {
		all = append(all, check{r, false})
	}
	return all
}

// lastAgent is beyond the id of every agent.
const lastAgent = "\U0010FFFF"

// nextRange returns where the range of agents ends that begins at an agent, lastAgent for the last
// range, and how many entries it has.
func (p *Prover) nextRange(
	ctx context.Context, conn engine.Conn, from string,
) (to string, entries int64, err error) {
	to = lastAgent
	agents := 0
	err = conn.Rows(ctx, "SELECT agent_id, entries FROM wallets WHERE agent_id >= ?1 ORDER BY agent_id LIMIT ?2",
		[]any{from, p.bounds.Agents + 1}, func(row engine.Row) error {
			var id string
			var n int64
			if err := row.Scan(&id, &n); err != nil || to != lastAgent {
				return err
			}
			if agents > 0 && entries+n > p.bounds.Entries || agents == p.bounds.Agents {
				to = id
				return nil
			}
			agents, entries = agents+1, entries+n
			return nil
		})
	return to, entries, err
}

// scope returns what makes a rule's query see a range of agents alone: its tables are hidden by those
// of the same names that a WITH clause defines.
func (p *Prover) scope() string {
	schema := "main."
	if p.postgres {
		schema = "" // a WITH clause of PostgreSQL does not see itself
	}
	with := "WITH "
	for i, table := range []string{"wallets", "ledger_entries", "sessions", "usage_hours", "session_topups",
		"session_counts", "agent_hours"} {
		if i > 0 {
			with += ", "
		}
		with += table + " AS (SELECT * FROM " + schema + table + " WHERE agent_id >= ?1 AND agent_id < ?2)"
	}
	return with + " "
}

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

// findIn returns the rows of a range of agents that break a rule.
func (p *Prover) findIn(ctx context.Context, conn engine.Conn, from, to string) (faults []ports.Fault, err error) {
	scope := p.scope()
	for _, c := range p.checks() {
		if !c.byAgents {
			continue
		}
		if faults, err = find(ctx, conn, c.rule, scope+c.broken, []any{from, to}, faults); err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// findOthers returns what no rule of rows shows.
func (p *Prover) findOthers(ctx context.Context, conn engine.Conn, state *proofState) ([]ports.Fault, error) {
	faults, err := p.findUnguarded(ctx, conn)
	if err != nil {
		return nil, err
	}
	if lost := state.New.Lost; !lost.IsZero() {
		faults = append(faults, ports.Fault{Rule: oldProved, Where: "the ledger",
			Detail: "the digests were lost, and were computed anew at " + lost.Format(time.RFC3339)})
	}
	more, err := findChangedActions(ctx, conn, state.New.Actions)
	return append(faults, more...), err
}

// Verify proves the ledger on one snapshot, while others write.
func (p *Prover) Verify(
	ctx context.Context, against ...ports.ProofHead,
) (faults []ports.Fault, entries int, err error) {
	found := map[string]int{} // by rule
	add := func(more []ports.Fault) {
		for _, f := range more {
			if found[f.Rule]++; found[f.Rule] <= maxFaults {
				faults = append(faults, f)
			}
		}
	}
	err = p.db.Audit(ctx, func(conn engine.Conn) error {
		state, _, err := stateOf(conn)
		if err != nil {
			return err
		}
		due, err := p.dueOf(conn, &state)
		if err != nil {
			return err
		}
		heads := newHeads(against)
		for from := ""; from != lastAgent; {
			to, _, err := p.nextRange(ctx, conn, from)
			if err != nil {
				return err
			}
			more, err := p.findIn(ctx, conn, from, to)
			if err != nil {
				return err
			}
			add(more)
			if more, err = follow(ctx, conn, from, to, due, heads); err != nil {
				return err
			}
			add(more)
			from = to
		}
		for _, c := range p.checks() {
			if c.byAgents {
				continue
			}
			more, err := find(ctx, conn, c.rule, c.broken, nil, nil)
			if err != nil {
				return err
			}
			add(more)
		}
		more, err := p.findOthers(ctx, conn, &state)
		if err != nil {
			return err
		}
		add(more)
		add(heads.compare())
		return conn.Row("SELECT COUNT(*) FROM ledger_entries", nil).Scan(&entries)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("verify: %w", err)
	}
	return faults, entries, nil
}
