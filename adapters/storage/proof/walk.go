package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// The rules of entries and wallets that are checked entry by entry, in the one walk that computes the
// digests.
const (
	sumsToZero    = "every entry sums to zero"
	balanceAfter  = "the balance after an entry is the sum up to it"
	walletSums    = "every wallet equals its entries"
	walletTotals  = "what a wallet was charged, refunded and recharged equals its entries"
	noneNegative  = "no part of a wallet is negative"
	noneMissing   = "no entry is missing"
	provedStay    = "no entry that was proved has changed"
	oldProved     = "every old entry is proved"
	creditedOwn   = "a wallet has the sum and the flags of the own money that its entries credit"
	spentOnDay    = "what a wallet spent on its day was held on it"
	trialEnds     = "trial credit ends a number of days after it was granted"
	trialOver     = "expired trial credit is not spendable"
	ofWallet      = "every entry belongs to a wallet"
	ofItsType     = "every entry moves what its type moves"
	monthSessions = "the sums of an agent's months by session are those of its entries"
	monthSums     = "the sums of an agent's months are those of its entries"
)

// walkRules are their names.
var walkRules = []string{sumsToZero, balanceAfter, walletSums, walletTotals, noneNegative, noneMissing, provedStay,
	oldProved,
	creditedOwn, spentOnDay, trialEnds, trialOver, monthSums, monthSessions, sealsStay, ofWallet, ofItsType}

// wallet is what a walk compares with entries.
type wallet struct {
	AgentID                      string
	Entries                      int64
	Trial, Own                   int64
	HeldTrial, HeldOwn           int64
	Charged, Refunded, Recharged int64
	Adjusted                     int64
	TrialExpiresAt               int64
	TrialExpired                 int64
	Funded, Credited             int64
	SpentDay, SpentToday         int64
}

var (
	walletSelect = "SELECT " + strings.Join(column.Names(new(wallet)), ", ") +
		" FROM wallets WHERE agent_id >= ?1 AND agent_id < ?2"
	proofSelect = "SELECT " + strings.Join(proofColumns, ", ") +
		" FROM ledger_proofs WHERE agent_id >= ?1 AND agent_id < ?2"
)

// walk follows the entries of a range of agents, one agent after the other.
type walk struct {
	reading
	wallets map[string]wallet
	proved  map[string]proofRow
	months  map[string]*months
	sealed  map[string][]sealRow
	faults  []ports.Fault

	chain chain
	facts facts
	sums  *months   // of the agent
	seals []sealRow // of its entries that follow
}

// reading is what is read of a range of agents, and for what.
type reading struct {
	from, to string
	month    int64    // the entries that are in no month sealed before it; 0: all
	days     KeptDays // of which deliveries are summed
	due      due
	heads    *heads
	sealing  *sealing
	survey   *survey
}

// facts are what follows from the entries of one agent for its wallet, beside the sums.
type facts struct {
	wallet
	known            bool  // there is a wallet
	sealed           int64 // before when the entries are sealed that were not read
	proved           int64 // how many entries are proved
	lastOrd          int64
	unproved         bool
	grantedAt        int64
	credited, funded int64
	adjusted         int64
	held, released   int64 // on the wallet's day of spending or later
	since            int64 // the first entry on that day
	on               int64 // the entries on that day or later
	lastHold         int64
}

// follow walks entries of a range of agents and returns what is wrong with them and their wallets, and how many it
// read. It reads the proved ones again, and so finds that one has changed since.
func (p *Prover) follow(ctx context.Context, conn engine.Conn, r reading) (
	faults []ports.Fault, entries int, err error,
) {
	w := &walk{reading: r}
	if err := w.begin(ctx, conn); err != nil {
		return nil, 0, err
	}
	query, args := entrySelect+ofRange+" ORDER BY agent_id, ord", []any{r.from, r.to}
	if r.month > 0 {
		query, args = p.openEntries(), append(args, r.month)
	}
	var e entry
	var seq int64
	into := column.Targets(&e, &seq)
	err = conn.Rows(ctx, query, args, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		if e.AgentID != w.chain.AgentID {
			w.endAgent()
			w.beginAgent(e.AgentID)
		}
		w.add(&e, seq)
		entries++
		return nil
	})
	if err != nil {
		return nil, 0, work.Wrap("verify that "+provedStay, err)
	}
	w.endAgent()
	w.endRange()
	return w.faults, entries, nil
}

// begin reads what the entries are compared with.
func (w *walk) begin(ctx context.Context, conn engine.Conn) (err error) {
	w.wallets, w.proved = map[string]wallet{}, map[string]proofRow{}
	if w.months, err = readMonths(ctx, conn, w.from, w.to, w.month); err != nil {
		return work.Wrap("read the sums of months", err)
	}
	if w.sealed, err = readSeals(ctx, conn, w.from, w.to, w.month); err != nil {
		return err
	}
	err = conn.Rows(ctx, walletSelect, []any{w.from, w.to}, func(row engine.Row) error {
		var x wallet
		err := row.Scan(column.Targets(&x)...)
		w.wallets[x.AgentID] = x
		return err
	})
	if err != nil {
		return work.Wrap("read the wallets", err)
	}
	err = conn.Rows(ctx, proofSelect, []any{w.from, w.to}, func(row engine.Row) error {
		var p proofRow
		err := row.Scan(column.Targets(&p)...)
		w.proved[p.AgentID] = p
		return err
	})
	return work.Wrap("read how far the ledger is proved", err)
}

func (w *walk) fault(rule, where, detail string, args ...any) {
	w.faults = append(w.faults, ports.Fault{Rule: rule, Where: where, Detail: fmt.Sprintf(detail, args...)})
}

func (w *walk) beginAgent(id string) {
	w.chain = chain{proofRow: proofRow{AgentID: id}, buffer: w.chain.buffer}
	w.facts = facts{}
	w.facts.wallet, w.facts.known = w.wallets[id], false
	if _, ok := w.wallets[id]; ok {
		w.facts.known = true
		delete(w.wallets, id)
	}
	w.facts.proved = w.proved[id].Entries
	w.sums, w.seals = w.months[id], w.sealed[id]
	delete(w.months, id)
	delete(w.sealed, id)
	if w.month > 0 && len(w.seals) > 0 {
		w.beginSealed(w.seals[0])
		w.seals = nil
	}
	w.heads.begin()
}

// add takes the next entry of the agent.
func (w *walk) add(e *entry, seq int64) {
	c, f := &w.chain, &w.facts
	w.heads.before(c, seq)
	w.sealing.before(w, e)
	c.add(e)
	if e.Trial+e.Own+e.HeldTrial+e.HeldOwn+e.Counter != 0 || e.Account == "" && e.Counter != 0 {
		w.fault(sumsToZero, e.ID, "sum %d", e.Trial+e.Own+e.HeldTrial+e.HeldOwn+e.Counter)
	}
	if !f.known {
		w.fault(ofWallet, e.ID, "agent %s", e.AgentID)
	}
	if !e.movesByType() {
		w.fault(ofItsType, e.ID, "%s of %d, %d, held %d and %d, %s %d", e.Type, e.Trial, e.Own, e.HeldTrial, e.HeldOwn,
			e.Account, e.Counter)
	}
	if e.Type == string(billing.Recharge) && !strings.HasPrefix(e.Ref, "usdt:") {
		w.fault(ofTransfer, e.ID, "%s of %d for %s", e.Ref, e.Trial+e.Own, e.AgentID)
	}
	if e.BalanceAfter != c.Trial+c.Own {
		w.fault(balanceAfter, e.ID, "balance %d; sum %d", e.BalanceAfter, c.Trial+c.Own)
	}
	if p, left := w.proved[e.AgentID]; left && c.Entries == p.Entries {
		delete(w.proved, e.AgentID)
		if c.row() != p {
			w.fault(provedStay, p.AgentID, "one of its first %d entries", p.Entries)
		}
	} else if !left && !f.unproved && w.due.has(seq, e.At) {
		f.unproved = true
		w.fault(oldProved, e.AgentID, "entry %d of %d is not", e.Ord, f.Entries)
	}
	f.add(e)
	w.checkSeals()
	w.sums.add(e)
	w.survey.add(e)
}

// add notes what follows from an entry.
func (f *facts) add(e *entry) {
	f.lastOrd = e.Ord
	switch billing.Type(e.Type) {
	case billing.TrialGrant:
		f.grantedAt = e.At
	case billing.Recharge:
		f.funded, f.credited = 1, 1
	case billing.Adjustment:
		if e.Own > 0 {
			f.credited = 1
			f.adjusted += e.Own
		}
	case billing.HoldEntry:
		if e.Trial+e.Own < 0 {
			f.lastHold = e.At // not the latest: the clock may have been ahead before
		}
	}
	if e.At < f.SpentDay {
		return
	}
	if f.on++; f.since == 0 {
		f.since = e.Ord
	}
	switch billing.Type(e.Type) {
	case billing.HoldEntry:
		f.held -= e.Trial + e.Own
	case billing.Release:
		f.released += e.Trial + e.Own
	}
}

// endAgent compares the wallet of an agent with its entries.
func (w *walk) endAgent() {
	w.heads.end(&w.chain)
	w.sealing.end(w)
	w.endSeals()
	if w.sums != nil {
		if detail := w.sums.compare(w.chain.Entries); detail != "" {
			w.fault(monthSums, w.chain.AgentID, "%s", detail)
		}
		if detail := w.sums.compareSessions(); detail != "" {
			w.fault(monthSessions, w.chain.AgentID, "%s", detail)
		}
		w.sums = nil
	}
	if !w.facts.known {
		return
	}
	c, f := &w.chain, w.facts
	x := f.wallet
	if min(x.Trial, x.Own, x.HeldTrial, x.HeldOwn) < 0 {
		w.fault(noneNegative, x.AgentID, "trial %d, own %d, held %d and %d", x.Trial, x.Own, x.HeldTrial, x.HeldOwn)
	}
	if c.Trial != x.Trial || c.Own != x.Own || c.HeldTrial != x.HeldTrial || c.HeldOwn != x.HeldOwn {
		w.fault(walletSums, x.AgentID, "wallet %d, %d, %d, %d; entries %d, %d, %d, %d", x.Trial, x.Own, x.HeldTrial,
			x.HeldOwn, c.Trial, c.Own, c.HeldTrial, c.HeldOwn)
	}
	if c.Charged != x.Charged || c.Refunded != x.Refunded || c.Recharged != x.Recharged {
		w.fault(walletTotals, x.AgentID, "wallet %d, %d, %d; entries %d, %d, %d", x.Charged, x.Refunded, x.Recharged,
			c.Charged, c.Refunded, c.Recharged)
	}
	if x.Entries != c.Entries || x.Entries != f.lastOrd {
		w.fault(noneMissing, x.AgentID, "wallet %d; entries %d, last %d", x.Entries, c.Entries, f.lastOrd)
	}
	// A program of an earlier version sets funded alone.
	if f.funded != x.Funded || f.credited != max(x.Credited, x.Funded) || f.adjusted != x.Adjusted {
		w.fault(creditedOwn, x.AgentID, "funded %d, credited %d, adjusted %d; entries %d, %d, %d", x.Funded, x.Credited,
			x.Adjusted, f.funded, f.credited, f.adjusted)
	}
	w.trial(f)
	w.spent(f)
}

// trial checks the end of the trial credit: by the time when new entries were proved last, the leader
// had long written off what was due an hour before.
func (w *walk) trial(f facts) {
	switch {
	case (f.grantedAt == 0) != (f.TrialExpiresAt == 0):
		w.fault(trialEnds, f.AgentID, "granted at %d, ends at %d", f.grantedAt, f.TrialExpiresAt)
	case f.grantedAt > 0 && (f.TrialExpiresAt <= f.grantedAt || (f.TrialExpiresAt-f.grantedAt)%dayMicros != 0):
		w.fault(trialEnds, f.AgentID, "granted at %d, ends at %d, which is not a number of days later", f.grantedAt,
			f.TrialExpiresAt)
	}
	if f.TrialExpired != 0 && (f.TrialExpiresAt == 0 || f.TrialExpiresAt > w.due.now) {
		w.fault(trialEnds, f.AgentID, "ends at %d, and is over", f.TrialExpiresAt)
	}
	if f.Trial > 0 && (f.TrialExpired == 1 || f.TrialExpiresAt > 0 && f.TrialExpiresAt < w.due.settled) {
		w.fault(trialOver, f.AgentID, "trial %d, ended at %d", f.Trial, f.TrialExpiresAt)
	}
}

// spent checks what was spent on the wallet's day: the holds of that day, less what of them was released. What
// is released of earlier holds lowers nothing. Entries that are out of order, as after a clock that went
// back, bound nothing from above.
func (w *walk) spent(f facts) {
	if f.SpentDay < f.sealed { // a whole proof compares it
		f.held, f.released, f.SpentToday = 0, 0, 0
	}
	ordered := f.since == 0 || f.lastOrd-f.since+1 == f.on
	if f.SpentDay%dayMicros != 0 || f.SpentToday < f.held-f.released || ordered && f.SpentToday > f.held ||
		f.lastHold >= f.SpentDay+dayMicros {
		w.fault(spentOnDay, f.AgentID, "day %d, spent %d; held %d, released %d", f.SpentDay, f.SpentToday, f.held, f.released)
	}
}

// endRange names what has no entries: wallets, and proofs.
func (w *walk) endRange() {
	for _, id := range slices.Sorted(maps.Keys(w.wallets)) {
		w.beginAgent(id)
		w.endAgent()
	}
	for _, id := range slices.Sorted(maps.Keys(w.months)) {
		w.fault(monthSums, id, "it has no entries")
	}
	for _, id := range slices.Sorted(maps.Keys(w.sealed)) {
		w.seals = w.sealed[id]
		w.endSeals()
	}
	for _, id := range slices.Sorted(maps.Keys(w.proved)) {
		w.fault(provedStay, id, "there are not %d entries any more", w.proved[id].Entries)
	}
}
