package proof

import (
	"context"
	"encoding/hex"
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

// endOfMonth returns before when everything may be sealed.
func endOfMonth(now time.Time) time.Time {
	t := now.Add(-sealAfter).UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

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

const (
	openingSelect = `SELECT agent_id, session_id, held_trial, held_own, charged_trial, charged_own, refunded_trial,
		refunded_own, paid, renewals, renewed FROM ledger_openings WHERE agent_id >= ?1 AND agent_id < ?2 AND month = ?3`

	// sealedSessions sums what the sessions that ended before ?3 moved.
	sealedSessions = `SELECT agent_id, CAST(SUM(up + down) AS BIGINT), CAST(SUM(rotations + worker_rotations) AS BIGINT)
		FROM sessions WHERE agent_id >= ?1 AND agent_id < ?2 AND counted = 1 AND ended_at < ?3 GROUP BY agent_id`
	// unsealable are the agents with a session that ended before ?3 and is not counted, as when it still holds money.
	unsealable = `SELECT DISTINCT agent_id FROM sessions
		WHERE agent_id >= ?1 AND agent_id < ?2 AND counted = 0 AND ended_at > 0 AND ended_at < ?3`
	// openings sums the entries before ?3 of the sessions that go on.
	openings = `SELECT e.agent_id, e.session_id, CAST(SUM(e.held_trial) AS BIGINT), CAST(SUM(e.held_own) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN -e.held_trial ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN -e.held_own ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'refund' THEN e.trial ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'refund' THEN e.own ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type IN ('charge', 'refund') THEN e.counter ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN ` + renewalHold + ` THEN 1 ELSE 0 END) AS BIGINT),
		CAST(COALESCE(MAX(CASE WHEN ` + renewalHold + ` THEN ` + renewalEnd + ` END), 0) AS BIGINT)
		FROM sessions s JOIN ledger_entries e ON e.agent_id = s.agent_id AND e.session_id = s.id
		WHERE s.agent_id >= ?1 AND s.agent_id < ?2 AND (s.counted = 0 OR s.ended_at >= ?3)
		AND e.agent_id >= ?1 AND e.agent_id < ?2 AND e.at < ?3 GROUP BY e.agent_id, e.session_id`

	// renewalHold are the entries e that hold money for the renewal of a static session, and renewalEnd is the end
	// before it in seconds, which their references name.
	renewalHold = "e.type = 'hold' AND e.ref LIKE 'hold:' || e.session_id || ':renew:%'"
	renewalEnd  = "CAST(substr(e.ref, length(e.session_id) + 13) AS BIGINT)"
)

// write is a statement of a step, whose result is not needed.
type write struct {
	what, statement string
	args            []any
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
