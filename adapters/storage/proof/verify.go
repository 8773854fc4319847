package proof

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// checks returns the rules of the ledger and of what it is about. Those of the tables that grow with
// every entry are proved by ranges of agents, in which the database sorts and sums a bounded number of
// rows; what they compare never belongs to two agents.
func (p *Prover) checks() []check {
	var all []check
	for _, r := range slices.Concat(ledgerRules, sessionRules, soldRules, countRules, summedRules) {
		all = append(all, check{r, true})
	}
	for _, r := range slices.Concat(placeRules(p.postgres), workerRules, rechargeRules, orderRules, accountRules) {
		all = append(all, check{r, false})
	}
	return all
}

// nextRange sets where the range of agents ends that begins at an agent, lastAgent for the last range, and returns how
// many entries it has. Those that are sealed end no range. If few are, all are read: rules look up less then.
func (p *Prover) nextRange(ctx context.Context, conn engine.Conn, r *reading) (entries int64, err error) {
	r.to = lastAgent
	agents, open := 0, int64(0)
	err = conn.Rows(ctx, `SELECT w.agent_id, w.entries, w.entries - COALESCE(l.entries, 0) FROM wallets w
		LEFT JOIN ledger_seals l ON l.agent_id = w.agent_id AND l.month = ?3
		WHERE w.agent_id >= ?1 ORDER BY w.agent_id LIMIT ?2`,
		[]any{r.from, p.bounds.Agents + 1, r.month}, func(row engine.Row) error {
			var id string
			var n, left int64
			if err := row.Scan(&id, &n, &left); err != nil || r.to != lastAgent {
				return err
			}
			if agents > 0 && open+left > p.bounds.Entries || agents == p.bounds.Agents {
				r.to = id
				return nil
			}
			agents, entries, open = agents+1, entries+n, open+left
			return nil
		})
	if 2*open >= entries {
		r.month = 0
	}
	return entries, err
}

// findIn returns the rows of a range of agents that break a rule, once its entries were walked.
func (p *Prover) findIn(ctx context.Context, conn engine.Conn, r reading) (faults []ports.Fault, err error) {
	scope, args := p.whole(), []any{r.from, r.to}
	if r.month > 0 {
		scope, args = p.open(), append(args, r.month)
	}
	var mark int64
	if r.days, mark, err = summedDays(conn, r.month); err != nil {
		return nil, err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	bounds := strings.NewReplacer("{month}", number(r.month), "{from}", number(r.days.From), "{to}", number(r.days.To),
		"{mark}", number(mark))
	if err := r.survey.read(ctx, conn, scope, r, args); err != nil {
		return nil, err
	}
	for _, c := range p.checks() {
		query := bounds.Replace(c.broken)
		if text, differs := openRules[c.name]; differs && r.month > 0 {
			query = text
		}
		if !c.byAgents || query == left || r.survey.holds(c.name) {
			continue
		}
		if faults, err = find(ctx, conn, c.rule, scope+query, args, faults); err != nil {
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
	if err != nil {
		return nil, err
	}
	days, err := findDays(ctx, conn, state.month())
	return slices.Concat(faults, more, days), err
}

// Verify proves the ledger while others write, a range of agents or a rule at a time, each on a snapshot of its own:
// one that lasts as long as the whole proof would keep the database from removing old rows meanwhile. What the rules
// compare never belongs to two ranges, and what the heads are of never changes.
func (p *Prover) Verify(
	ctx context.Context, against ...ports.ProofHead,
) (faults []ports.Fault, entries int, err error) {
	v := verification{Prover: p, heads: newHeads(against), found: map[string]int{}}
	v.state.Whole = true
	err = v.run(ctx)
	return v.faults, v.entries, err
}

// VerifyOpen is Verify of what is in no sealed month.
func (p *Prover) VerifyOpen(ctx context.Context) (faults []ports.Fault, entries int, sealed time.Time, err error) {
	v := verification{Prover: p, found: map[string]int{}}
	err = v.run(ctx)
	return v.faults, v.entries, v.state.Sealed, err
}

func (v *verification) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{v.begin, v.ranges, v.rules, v.others} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
	}
	v.add(v.heads.compare())
	return nil
}

// verification is one run of Verify.
type verification struct {
	*Prover
	state   proofState
	due     due
	heads   *heads
	entries int
	found   map[string]int // by rule
	faults  []ports.Fault
}

func (v *verification) add(faults []ports.Fault) {
	for _, f := range faults {
		if v.found[f.Rule]++; v.found[f.Rule] <= maxFaults {
			v.faults = append(v.faults, f)
		}
	}
}

// begin reads how far new entries are proved, before anything else is read: later it is farther.
func (v *verification) begin(ctx context.Context) error {
	whole := v.state.Whole
	return v.db.Audit(ctx, func(conn engine.Conn) (err error) {
		if v.state, _, err = stateOf(conn); err == nil {
			v.state.Whole = whole
			v.due, err = v.dueOf(conn, &v.state)
		}
		return err
	})
}

// ranges proves what belongs to an agent.
func (v *verification) ranges(ctx context.Context) error {
	for from := ""; from != lastAgent; {
		err := v.db.Audit(ctx, func(conn engine.Conn) error {
			r := reading{from: from, month: v.state.month(), due: v.due, heads: v.heads, survey: newSurvey()}
			if _, err := v.nextRange(ctx, conn, &r); err != nil {
				return err
			}
			if v.state.Whole && !v.state.Sealed.IsZero() {
				r.sealing = &sealing{month: column.Micros(v.state.Sealed), agents: map[string]sealRow{}}
			}
			faults, entries, err := v.follow(ctx, conn, r)
			if err != nil {
				return err
			}
			v.add(faults)
			faults, err = v.findIn(ctx, conn, r)
			v.add(faults)
			if r.sealing != nil {
				if err := r.sealing.readSessions(ctx, conn, r); err != nil {
					return err
				}
				if faults, err = r.sealing.compare(ctx, conn, r); err != nil {
					return err
				}
				v.add(faults)
			}
			v.entries += entries
			from = r.to
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rules proves the rules of everything at once.
func (v *verification) rules(ctx context.Context) error {
	for _, c := range v.checks() {
		if c.byAgents {
			continue
		}
		err := v.db.Audit(ctx, func(conn engine.Conn) error {
			faults, err := find(ctx, conn, c.rule, c.broken, nil, nil)
			v.add(faults)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) others(ctx context.Context) error {
	return v.db.Audit(ctx, func(conn engine.Conn) error {
		faults, err := v.findOthers(ctx, conn, &v.state)
		v.add(faults)
		return err
	})
}
