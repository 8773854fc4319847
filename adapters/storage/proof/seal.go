package proof

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

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

// month returns before when the months are sealed that a proof leaves out; 0 if it reads everything.
func (p *proofState) month() int64 {
	if p.Whole || p.Sealed.IsZero() {
		return 0
	}
	return column.Micros(p.Sealed)
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

// A month that is over is sealed: a whole proof that finds nothing wrong with a range of agents keeps what their
// entries before the start of a month sum up to, with the digest. The proofs after that begin there: they read the
// entries that follow, and the sessions that live, are not counted yet or ended since. Everything is read again once
// in wholeEvery, and whenever another month can be sealed, which finds what was changed in a sealed month.

// sealsStay is the name of the rule by which the entries of sealed months are as they were when they were sealed.
const sealsStay = "a sealed month is as it was sealed"

const (
	// wholeEvery is how often sealed months are proved.
	wholeEvery = 7 * 24 * time.Hour
	// sealAfter is how long after its end a month is sealed: by then what ended in it is charged.
	sealAfter = 5 * 24 * time.Hour
	// sealRows is how many rows a unit writes.
	sealRows = 1000
)

// sealRow is a row of ledger_seals.
type sealRow struct {
	AgentID                      string
	Month                        int64 // the start of the first month that is not sealed
	Entries                      int64
	Trial, Own                   int64
	HeldTrial, HeldOwn           int64
	Charged, Refunded, Recharged int64
	Digest                       string // hexadecimal
	GrantedAt                    int64
	Funded, Credited, Adjusted   int64
	LastHold                     int64
	Bytes, Rotations             int64 // of the sessions that ended before
}

// openingRow is a row of ledger_openings.
type openingRow struct {
	AgentID                    string
	Month                      int64
	SessionID                  string
	HeldTrial, HeldOwn         int64
	ChargedTrial, ChargedOwn   int64
	RefundedTrial, RefundedOwn int64
	Paid                       int64
	Renewals                   int64
	Renewed                    int64 // the end before the last renewal, in seconds since 1970
}

// sums returns what the columns of openings are scanned into.
func (o *openingRow) sums() []any {
	return []any{&o.AgentID, &o.SessionID, &o.HeldTrial, &o.HeldOwn, &o.ChargedTrial, &o.ChargedOwn, &o.RefundedTrial,
		&o.RefundedOwn, &o.Paid, &o.Renewals, &o.Renewed}
}

var (
	sealSelect = "SELECT " + strings.Join(column.Names(new(sealRow)), ", ") +
		" FROM ledger_seals WHERE agent_id >= ?1 AND agent_id < ?2"
	putSeal    = putRow("ledger_seals", new(sealRow), 2)
	putOpening = putRow("ledger_openings", new(openingRow), 3)
)

// putRow returns the statement that writes a row whose first columns are its key.
func putRow(table string, row any, key int) string {
	names := column.Names(row)
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + work.Placeholders(1, len(names)) +
		") ON CONFLICT (" + strings.Join(names[:key], ", ") + ") DO UPDATE SET (" + strings.Join(names[key:], ", ") +
		") = (excluded." + strings.Join(names[key:], ", excluded.") + ")"
}

// proof returns how far the entries before the seal are proved.
func (s sealRow) proof() proofRow {
	return proofRow{s.AgentID, s.Entries, s.Trial, s.Own, s.HeldTrial, s.HeldOwn, s.Charged, s.Refunded, s.Recharged,
		s.Digest}
}

// sealOf returns the seal of what a chain and its facts have come to.
func sealOf(c *chain, f *facts) sealRow {
	p := c.row()
	return sealRow{AgentID: p.AgentID, Entries: p.Entries, Trial: p.Trial, Own: p.Own, HeldTrial: p.HeldTrial,
		HeldOwn: p.HeldOwn, Charged: p.Charged, Refunded: p.Refunded, Recharged: p.Recharged, Digest: p.Digest,
		GrantedAt: f.grantedAt, Funded: f.funded, Credited: f.credited, Adjusted: f.adjusted, LastHold: f.lastHold}
}

// day returns the day before which a seal is of everything.
func (s sealRow) day() string { return column.Time(s.Month).Format(time.DateOnly) }

// same reports whether two seals are of the same entries.
func (s sealRow) same(other sealRow) bool {
	s.Month, s.Bytes, s.Rotations = other.Month, other.Bytes, other.Rotations
	return s == other
}

// readSeals reads the seals of a range of agents: all of them, the oldest first, or those of one month.
func readSeals(ctx context.Context, conn engine.Conn, from, to string, month int64) (map[string][]sealRow, error) {
	query, args := sealSelect, []any{from, to}
	if month > 0 {
		query, args = query+" AND month = ?3", append(args, month)
	}
	all := map[string][]sealRow{}
	var s sealRow
	into := column.Targets(&s)
	err := conn.Rows(ctx, query+" ORDER BY agent_id, month", args, func(row engine.Row) error {
		err := row.Scan(into...)
		all[s.AgentID] = append(all[s.AgentID], s)
		return err
	})
	return all, work.Wrap("read the seals of months", err)
}

// beginSealed begins an agent behind its seal.
func (w *walk) beginSealed(s sealRow) {
	w.chain.proofRow = s.proof()
	digest, err := hex.DecodeString(s.Digest)
	if err != nil || copy(w.chain.digest[:], digest) != len(w.chain.digest) {
		w.fault(sealsStay, s.AgentID, "the digest is damaged")
	}
	if w.sums != nil {
		w.sums.since = s.Month
	}
	f := &w.facts
	f.sealed, f.lastOrd = s.Month, s.Entries
	f.grantedAt, f.funded, f.credited, f.adjusted, f.lastHold = s.GrantedAt, s.Funded, s.Credited, s.Adjusted, s.LastHold
	switch p, proved := w.proved[s.AgentID]; {
	case !proved:
		w.fault(oldProved, s.AgentID, "none of %d sealed entries is", s.Entries)
	case p.Entries < s.Entries:
		delete(w.proved, s.AgentID)
		w.fault(provedStay, s.AgentID, "%d are proved, and %d were sealed", p.Entries, s.Entries)
	case p.Entries == s.Entries:
		delete(w.proved, s.AgentID)
		if s.proof() != p {
			w.fault(provedStay, s.AgentID, "one of its first %d entries", p.Entries)
		}
	}
}

// checkSeals compares the seals that are of the entries up to the last one.
func (w *walk) checkSeals() {
	for len(w.seals) > 0 && w.seals[0].Entries <= w.chain.Entries {
		s := w.seals[0]
		w.seals = w.seals[1:]
		if !sealOf(&w.chain, &w.facts).same(s) {
			w.fault(sealsStay, s.AgentID, "one of the %d entries before %s", s.Entries, s.day())
		}
	}
}

// endSeals names the seals of entries that are not there.
func (w *walk) endSeals() {
	for _, s := range w.seals {
		w.fault(sealsStay, s.AgentID, "there are not %d entries before %s any more", s.Entries, s.day())
	}
	w.seals = nil
}

// sealing collects the seals of a range of agents while its entries are walked. A nil one collects none.
type sealing struct {
	month  int64
	agents map[string]sealRow
	closed bool // an entry of the agent is not before the month
	mixed  bool // and a later one is
}

// before takes the chain of an agent before an entry is added.
func (s *sealing) before(w *walk, e *entry) {
	switch {
	case s == nil:
	case e.At < s.month:
		s.mixed = s.mixed || s.closed
	case !s.closed:
		s.closed = true
		s.take(w)
	}
}

// end takes the chain of an agent behind its last entry.
func (s *sealing) end(w *walk) {
	if s == nil {
		return
	}
	if !s.closed {
		s.take(w)
	}
	if s.mixed {
		delete(s.agents, w.chain.AgentID)
	}
	s.closed, s.mixed = false, false
}

// take keeps the seal of an agent, unless an entry is not proved.
func (s *sealing) take(w *walk) {
	if w.chain.Entries > 0 && w.facts.known && w.chain.Entries <= w.facts.proved {
		row := sealOf(&w.chain, &w.facts)
		row.Month = s.month
		s.agents[row.AgentID] = row
	}
}

// seals returns what seals a range of agents in which nothing is wrong. A seal of the month that is there stays as
// it is if it is in use: the proofs that run begin at it.
func (p *Prover) seals(
	ctx context.Context, conn engine.Conn, r reading, state *proofState,
) (list []write, faults []ports.Fault, err error) {
	found := r.sealing
	if err := found.readSessions(ctx, conn, r); err != nil {
		return nil, nil, err
	}
	if column.Micros(state.Sealed) == found.month {
		if faults, err = found.compare(ctx, conn, r); err != nil {
			return nil, nil, err
		}
	}
	if len(found.agents) == 0 {
		return nil, faults, nil
	}
	list, err = found.readOpenings(ctx, conn, r)
	list = append(list, write{"drop openings of old months",
		"DELETE FROM ledger_openings WHERE agent_id >= ?1 AND agent_id < ?2 AND month < ?3",
		[]any{r.from, r.to, column.Micros(state.Sealed)}})
	for _, agent := range slices.Sorted(maps.Keys(found.agents)) { // behind the openings, which count with a seal alone
		s := found.agents[agent]
		list = append(list, write{"seal the months of " + agent, putSeal, column.Values(&s)})
	}
	return list, faults, err
}

// compare returns the seals in use of a range of agents that are of other sessions than there are, and leaves out the
// agents that have them.
func (s *sealing) compare(ctx context.Context, conn engine.Conn, r reading) (faults []ports.Fault, err error) {
	there, err := readSeals(ctx, conn, r.from, r.to, s.month)
	if err != nil {
		return nil, err
	}
	for _, agent := range slices.Sorted(maps.Keys(there)) {
		was, is := there[agent][0], s.agents[agent]
		delete(s.agents, agent)
		if is.Entries > 0 && (is.Bytes != was.Bytes || is.Rotations != was.Rotations) {
			faults = append(faults, ports.Fault{Rule: sealsStay, Where: agent, Detail: fmt.Sprintf(
				"%d bytes and %d rotations of sessions that ended before %s, sealed %d and %d", is.Bytes, is.Rotations,
				was.day(), was.Bytes, was.Rotations)})
		}
	}
	if len(there) == 0 {
		return nil, nil
	}
	more, err := s.compareOpenings(ctx, conn, r, there)
	return append(faults, more...), err
}

// compareOpenings returns what is kept of sessions that went on, beside the seals in use of agents, and is not what
// their entries have.
func (s *sealing) compareOpenings(
	ctx context.Context, conn engine.Conn, r reading, sealed map[string][]sealRow,
) (faults []ports.Fault, err error) {
	kept, args := map[string]openingRow{}, []any{r.from, r.to, s.month}
	o := openingRow{Month: s.month}
	fault := func(o openingRow) {
		faults = append(faults, ports.Fault{Rule: sealsStay, Where: o.SessionID,
			Detail: "what it held, was charged and refunded before " + sealRow{Month: s.month}.day()})
	}
	err = conn.Rows(ctx, openingSelect, args, func(row engine.Row) error {
		err := row.Scan(o.sums()...)
		kept[o.SessionID] = o
		return err
	})
	if err != nil {
		return nil, work.Wrap("read what sessions had", err)
	}
	err = conn.Rows(ctx, openings, args, func(row engine.Row) error {
		err := row.Scan(o.sums()...)
		if _, ok := sealed[o.AgentID]; ok && kept[o.SessionID] != o {
			fault(o)
		}
		delete(kept, o.SessionID)
		return err
	})
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		if _, ok := sealed[kept[id].AgentID]; ok {
			fault(kept[id])
		}
	}
	return faults, work.Wrap("sum the sessions that go on", err)
}

// readSessions adds what the sessions of a range of agents moved that ended before the month, and drops the agents with
// one that is not counted.
func (s *sealing) readSessions(ctx context.Context, conn engine.Conn, r reading) error {
	args := []any{r.from, r.to, s.month}
	var agent string
	err := conn.Rows(ctx, unsealable, args, func(row engine.Row) error {
		err := row.Scan(&agent)
		delete(s.agents, agent)
		return err
	})
	if err != nil {
		return work.Wrap("find sessions that are not over", err)
	}
	var bytes, rotations int64
	err = conn.Rows(ctx, sealedSessions, args, func(row engine.Row) error {
		err := row.Scan(&agent, &bytes, &rotations)
		if x, ok := s.agents[agent]; ok {
			x.Bytes, x.Rotations = bytes, rotations
			s.agents[agent] = x
		}
		return err
	})
	return work.Wrap("sum the sessions that are over", err)
}

// readOpenings returns what keeps the sums of the sessions that go on.
func (s *sealing) readOpenings(ctx context.Context, conn engine.Conn, r reading) (list []write, err error) {
	o := openingRow{Month: s.month}
	err = conn.Rows(ctx, openings, []any{r.from, r.to, s.month}, func(row engine.Row) error {
		err := row.Scan(o.sums()...)
		if _, ok := s.agents[o.AgentID]; ok {
			list = append(list, write{"keep what a session had", putOpening, column.Values(&o)})
		}
		return err
	})
	return list, work.Wrap("sum the sessions that go on", err)
}
