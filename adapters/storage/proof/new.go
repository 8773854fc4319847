package proof

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// newProofState is how far new entries are proved. On PostgreSQL entries get their seq before they are
// committed, so a round proves those that were there in the round before: by then, what was under way has ended. After
// a round exactly the entries up to Mark are proved, but those of the agents in Wrong.
type newProofState struct {
	Mark   int64     `json:"mark"`   // the entries up to this seq are proved
	Before int64     `json:"before"` // the last seq at the end of the round before
	Done   bool      `json:"done"`   // no round runs
	Lost   time.Time `json:"lost"`   // when the proof began anew, though old entries had been proved; zero: never
	At     time.Time `json:"at"`     // when a round last ended and nothing was wrong
	Faults int       `json:"faults"` // until a complete proof that began later finds none
	Rule   string    `json:"rule"`
	Again  bool      `json:"again"`           // whether one was found since the complete proof that runs began
	Wrong  []string  `json:"wrong,omitempty"` // agents whose entries are wrong, which every round looks at

	Head    ports.ProofHead        `json:"head"`              // as published last
	Actions map[string]actionProof `json:"actions,omitempty"` // of operators, by month
}

// mostWrong is how many agents with wrong entries are looked at again.
const mostWrong = 100

// publishEvery is how often the head of the digests is published.
const publishEvery = time.Hour

// fault notes that the entries of an agent are wrong.
func (p *newProofState) fault(agent, rule string) {
	if !slices.Contains(p.Wrong, agent) && len(p.Wrong) < mostWrong {
		p.Wrong = append(p.Wrong, agent)
	}
	p.Faults, p.Rule, p.Again = max(p.Faults, len(p.Wrong)), rule, true
}

// ProveNew proves the next entries of the agents that have new ones.
func (p *Prover) ProveNew(ctx context.Context) (found ports.Proof, more bool, err error) {
	found, err = p.prove(ctx, func(conn engine.Conn, state *proofState) (writes []write, err error) {
		n := newProof{&state.New, conn, p.clock.Now(), due{}}
		if n.due, err = p.dueOf(conn, state); err != nil {
			return nil, err
		}
		if err := n.begin(state.stored); err != nil {
			return nil, err
		}
		if err := n.publish(ctx); err != nil {
			return nil, err
		}
		var rows []proofRow
		if rows, more, err = n.step(ctx, p.bounds.New, p.postgres); err == nil && !more {
			err = n.proveActions(ctx)
		}
		for _, row := range rows {
			writes = append(writes, write{"store how far the ledger is proved", putProof, column.Values(&row)})
		}
		return writes, err
	})
	return found, more, err
}

// newProof is one step of the proof of new entries.
type newProof struct {
	*newProofState
	conn engine.Conn
	now  time.Time
	due  due
}

// begin notes that there is no state, though there are entries that had been proved. They are proved anew.
func (p *newProof) begin(stored bool) error {
	if stored {
		return nil
	}
	var old int
	err := p.conn.Row("SELECT COUNT(*) FROM (SELECT 1 FROM ledger_entries WHERE at >= ?1 AND at < ?2 LIMIT 1) e",
		[]any{p.due.since, p.due.before}).Scan(&old)
	if err != nil {
		return fmt.Errorf("look for entries that had been proved: %w", err)
	}
	if old > 0 {
		p.Lost = p.now
	}
	p.due = due{}
	return nil
}

// publish computes the head of the digests, if that is due and no round runs.
func (p newProof) publish(ctx context.Context) error {
	if !p.Done || p.now.Sub(p.Head.At).Abs() < publishEvery {
		return nil
	}
	head, ok, err := published(ctx, p.conn, p.Mark)
	if err == nil && ok {
		head.At = p.now
		p.Head = head
	}
	return err
}

func (p newProof) step(ctx context.Context, most int64, concurrent bool) (rows []proofRow, more bool, err error) {
	var last int64
	if err := p.conn.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries", nil).Scan(&last); err != nil {
		return nil, false, fmt.Errorf("find new entries: %w", err)
	}
	bound := last
	if concurrent {
		bound = min(p.Before, last)
	}
	upTo := min(bound, p.Mark+most)
	agents, err := p.agents(ctx, upTo)
	if err != nil {
		return nil, false, err
	}
	p.Done, p.Wrong = false, slices.DeleteFunc(p.Wrong, func(id string) bool {
		return !slices.ContainsFunc(agents, func(d dueProof) bool { return d.wallet.AgentID == id })
	})
	for left := most; len(agents) > 0; agents = agents[1:] {
		row, fault, err := p.agent(ctx, agents[0], bound, left)
		if err != nil {
			return nil, false, err
		}
		if fault.Rule != "" {
			p.fault(agents[0].wallet.AgentID, fault.Rule)
			continue
		}
		p.Wrong = slices.DeleteFunc(p.Wrong, func(id string) bool { return id == row.AgentID })
		more := row.Entries - agents[0].proved.Entries
		if more > 0 {
			rows = append(rows, row)
		}
		if left -= more; left <= 0 {
			return rows, true, nil
		}
	}
	if p.Mark = max(p.Mark, upTo); upTo < bound {
		return rows, true, nil
	}
	p.Before, p.Done = last, true
	if p.Faults == 0 {
		p.At = p.now
	}
	return rows, false, nil
}

// dueProof is an agent with entries that are not proved.
type dueProof struct{ wallet, proved proofRow }

// agents returns the agents that have an entry with a seq beyond Mark up to another, or are wrong, and
// entries that are not proved.
func (p newProof) agents(ctx context.Context, to int64) (list []dueProof, err error) {
	sums := proofColumns[1 : len(proofColumns)-1]
	query := "SELECT w.agent_id, w." + strings.Join(sums, ", w.") +
		", COALESCE(p." + strings.Join(sums, ", 0), COALESCE(p.") + ", 0), COALESCE(p.digest, '')" +
		` FROM wallets w LEFT JOIN ledger_proofs p ON p.agent_id = w.agent_id WHERE (w.agent_id IN
		(SELECT agent_id FROM ledger_entries WHERE seq > ?1 AND seq <= ?2) OR w.agent_id IN (` +
		work.Placeholders(3, max(len(p.Wrong), 1)) + `)) AND w.entries <> COALESCE(p.entries, 0) ORDER BY w.agent_id`
	args := []any{p.Mark, to}
	for _, id := range p.Wrong {
		args = append(args, id)
	}
	if len(p.Wrong) == 0 {
		args = append(args, "")
	}
	var d dueProof
	wallet, proved := column.Targets(&d.wallet), column.Targets(&d.proved)
	into := append(wallet[:len(wallet)-1:len(wallet)-1], proved[1:]...)
	err = p.conn.Rows(ctx, query, args, func(row engine.Row) error {
		err := row.Scan(into...)
		d.proved.AgentID = d.wallet.AgentID
		list = append(list, d)
		return err
	})
	return list, work.Wrap("find new entries", err)
}

// agent proves up to a number of entries of an agent with a seq up to another, and its wallet once it
// comes to the last. It returns how far it came, or the first fault.
func (p newProof) agent(ctx context.Context, d dueProof, bound, limit int64) (proofRow, ports.Fault, error) {
	c, err := newChain(d.proved)
	if err != nil {
		return proofRow{}, ports.Fault{}, err
	}
	var e entry
	var seq int64
	var fault ports.Fault
	into := column.Targets(&e, &seq)
	err = p.conn.Rows(ctx, entrySelect+"agent_id = ?1 AND ord > ?2 ORDER BY ord LIMIT ?3",
		[]any{d.wallet.AgentID, c.Entries, limit}, func(row engine.Row) error {
			err := row.Scan(into...)
			switch {
			case err != nil || fault.Rule != "" || seq > bound:
				return err
			case c.Entries == d.proved.Entries && p.due.has(seq, e.At):
				fault = ports.Fault{Rule: oldProved, Where: e.AgentID, Detail: fmt.Sprintf("entry %d was not", e.Ord)}
				return nil
			}
			c.add(&e)
			fault = c.check(&e)
			return nil
		})
	all := c.Entries >= d.wallet.Entries || c.Entries-d.proved.Entries < limit
	if err == nil && fault.Rule == "" && all {
		fault, err = p.ending(c, d.wallet)
	}
	return c.row(), fault, work.Wrap("prove the entries of "+d.wallet.AgentID, err)
}

// ending compares the wallet of an agent with its entries, or how many it has if some are not proved yet.
func (p newProof) ending(c *chain, wallet proofRow) (f ports.Fault, err error) {
	if c.Entries < wallet.Entries {
		var later int64
		err := p.conn.Row("SELECT COUNT(*) FROM ledger_entries WHERE agent_id = ?1 AND ord > ?2",
			[]any{wallet.AgentID, c.Entries}).Scan(&later)
		if err != nil || c.Entries+later == wallet.Entries && later > 0 {
			return f, err
		}
	}
	return c.compare(wallet), nil
}

// due is what the leader must have done.
type due struct {
	seq     int64 // entries up to it must be proved,
	since   int64 // if they are as old as that
	before  int64 // and older than that
	settled int64 // what ended before it must be over; 0: not known
	now     int64 // what is over ended before it, by a clock that is an hour ahead at most
}

// has reports whether an entry must be proved.
func (d due) has(seq, at int64) bool { return seq <= d.seq && at >= d.since && at < d.before }

// dueOf returns what must have been done by the state of the proof. Without a state every old entry must be
// proved that was booked since there are proofs: who can remove the digests can remove the state.
func (p *Prover) dueOf(conn engine.Conn, state *proofState) (due, error) {
	now, new := p.clock.Now(), &state.New
	soon := column.Micros(now.Add(late))
	switch {
	case !new.At.IsZero():
		before := column.Micros(new.At.Add(-late))
		return due{seq: new.Mark, before: before, settled: before, now: soon}, nil
	case state.stored:
		return due{seq: new.Mark, before: column.Micros(now.Add(-late)), now: soon}, nil
	}
	query := "SELECT CAST(strftime('%s', tstamp) AS INTEGER) * 1000000"
	if p.postgres {
		query = "SELECT CAST(extract(epoch FROM tstamp) * 1000000 AS BIGINT)"
	}
	d := due{seq: math.MaxInt64, before: column.Micros(now.Add(-late)), now: soon}
	err := conn.Row(query+" FROM goose_db_version WHERE version_id = 30 AND is_applied ORDER BY id DESC LIMIT 1", nil).
		Scan(&d.since)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return d, fmt.Errorf("read since when there are proofs: %w", err)
	}
	return d, nil
}
