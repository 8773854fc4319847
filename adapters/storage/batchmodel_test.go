package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// step is what a unit of a random history does once.
type step struct {
	does   string
	agent  string
	id     string // of a session, or the ref of an entry
	amount domain.Money
}

// randomUnit is a unit of a history, and what became of it.
type randomUnit struct {
	steps   []step
	named   bool // it names what it reads
	ignores bool // the errors of its steps
	fails   bool // at its end
	done    []step
	err     error
}

// A unit takes effect as a whole or not at all, whatever those do that share its transaction: book twice, spend more than
// there is, run statements between, or fail.
func TestUnitsOfRandomBatchesTakeEffectAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		var histories atomic.Int64
		rapid.Check(t, func(rt *rapid.T) {
			h := fmt.Sprintf("%d_", histories.Add(1))
			agents, sessions := []string{"agt_" + h + "a", "agt_" + h + "b"}, []string{"sess_" + h + "a", "sess_" + h + "b"}
			for i, a := range agents {
				addAgent(t, st, a, 100)
				update(t, st, func(ctx context.Context, tx ports.Tx) error {
					return errors.Join(tx.Sessions().Insert(ctx, dynamicSession(a, sessions[i])), tx.Ledger().SetLive(ctx, a, "", 1))
				})
			}
			units := drawUnits(rt, h, agents, sessions)
			for wave := range slices.Chunk(units, 12) { // what one has booked others find stored
				runTogether(t, st, wave)
			}
			checkHistory(rt, st, units, agents, sessions)
		})
		verify(t, st)
	})
}

// runTogether runs units at once, on SQLite in one batch.
func runTogether(t *testing.T, st *storage.Store, units []randomUnit) {
	t.Helper()
	g := closeGate(t, st)
	before := st.Waiting()
	for i := range units {
		g.units.Go(func() { units[i].err = units[i].update(st) })
	}
	if st.OnFile() {
		eventually(t, "the units are queued", func() bool { return st.Waiting() == before+len(units) })
	}
	g.pass()
}

func drawUnits(rt *rapid.T, history string, agents, sessions []string) []randomUnit {
	draw := rapid.Custom(func(rt *rapid.T) step {
		n := rapid.IntRange(0, len(agents)-1).Draw(rt, "agent")
		s := step{agent: agents[n], does: rapid.SampledFrom([]string{"book", "book", "change", "count", "read counters",
			"find entry", "list entries", "remember"}).Draw(rt, "does"), id: sessions[n]}
		switch s.does {
		case "book", "find entry", "remember":
			s.id = fmt.Sprint("ref_", history, rapid.IntRange(0, 5).Draw(rt, "ref"))
			s.amount = domain.Money(rapid.Int64Range(-80, 80).Draw(rt, "amount"))
		}
		return s
	})
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) randomUnit {
		return randomUnit{steps: rapid.SliceOfN(draw, 1, 4).Draw(rt, "steps"), named: rapid.Bool().Draw(rt, "named"),
			ignores: rapid.IntRange(0, 9).Draw(rt, "ignores") == 9, fails: rapid.IntRange(0, 9).Draw(rt, "fails") == 9}
	}), 24, 60).Draw(rt, "units")
}

// update runs the unit.
func (u *randomUnit) update(st *storage.Store) error {
	var reads ports.ReadSet
	if u.named {
		reads = ports.ReadSet{Agent: u.steps[0].agent, Money: true}
		for _, s := range u.steps {
			if s.does == "change" {
				reads.Sessions = append(reads.Sessions, s.id)
			}
		}
	}
	return st.Update(context.Background(), reads, func(ctx context.Context, tx ports.Tx) error {
		u.done = nil // of a run before
		for i, s := range u.steps {
			switch err := s.run(ctx, tx, i); {
			case err == nil:
				u.done = append(u.done, s)
			case !u.ignores:
				return err
			}
		}
		if u.fails {
			return errUnit
		}
		return nil
	})
}

func (s step) run(ctx context.Context, tx ports.Tx, n int) error {
	switch s.does {
	case "book":
		_, err := tx.Ledger().Post(ctx, deposit(s.agent, s.id, s.amount, n))
		return err
	case "change":
		own, err := tx.Sessions().Get(ctx, s.agent, s.id)
		if err != nil {
			return err
		}
		own.PasswordNo++
		return tx.Sessions().Put(ctx, own)
	case "count":
		return tx.Counters().Add(ctx, s.agent, ports.Tally{Reported: 1})
	case "read counters":
		_, err := tx.Counters().Get(ctx, s.agent)
		return err
	case "find entry":
		_, _, err := tx.Ledger().EntryOf(ctx, s.id)
		return err
	case "list entries":
		_, err := tx.Statements().Entries(ctx, s.agent, ports.LedgerFilter{}, domain.Page{Number: 1, Size: 5})
		return err
	default:
		c := ports.Call{AgentID: s.agent, Path: "/p", Key: s.id, Request: make([]byte, 32), CreatedAt: now}
		return tx.Idempotency().Keep(ctx, c)
	}
}

// checkHistory compares what is stored with what the units did that returned without an error.
func checkHistory(rt *rapid.T, st *storage.Store, units []randomUnit, agents, sessions []string) {
	balance, changes, counts := map[string]domain.Money{}, map[string]int{}, map[string]int64{}
	booked := map[string]int{} // and by how many
	for _, u := range units {
		for _, s := range u.done {
			switch {
			case u.err != nil:
			case s.does == "book":
				balance[s.agent] += s.amount
				booked[s.id]++
			case s.does == "change":
				changes[s.id]++
			case s.does == "count":
				counts[s.agent]++
			}
		}
	}
	for _, u := range units {
		books := func(s step) bool { return s.does == "book" && (booked[s.id] > 0 || u.booksTwice(s.id)) }
		spends := func(s step) bool { return s.does == "book" && s.amount < 0 }
		remembers := func(s step) bool { return s.does == "remember" }
		switch {
		case u.err == nil && !u.fails:
		case u.err != nil && u.ignores: // a transaction with a statement that failed cannot be committed
		case errors.Is(u.err, errUnit) && u.fails,
			errors.Is(u.err, ports.ErrDuplicate) && (slices.ContainsFunc(u.steps, books) || slices.ContainsFunc(u.steps, remembers)),
			errors.Is(u.err, billing.ErrInsufficientBalance) && slices.ContainsFunc(u.steps, spends):
		default:
			rt.Errorf("%+v: %v", u.steps, u.err)
		}
	}
	err := st.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for i, a := range agents {
			w, err := tx.Ledger().Wallet(ctx, a)
			s, sessionErr := tx.Sessions().Load(ctx, sessions[i])
			tally, countErr := tx.Counters().Get(ctx, a)
			if err := errors.Join(err, sessionErr, countErr); err != nil {
				return err
			}
			if w.Balance() != 100+balance[a] || s.PasswordNo != changes[s.ID] || tally.Reported != counts[a] {
				rt.Errorf("%s has %d, changes %d, counts %d; its units made %d, %d and %d", a, w.Balance(), s.PasswordNo, tally.Reported,
					100+balance[a], changes[s.ID], counts[a])
			}
		}
		for ref, by := range booked {
			if _, found, err := tx.Ledger().EntryOf(ctx, ref); err != nil || !found || by != 1 {
				rt.Errorf("the entry %s is booked by %d units, found: %v, %v", ref, by, found, err)
			}
		}
		return nil
	})
	if err != nil {
		rt.Error(err)
	}
}

func (u randomUnit) booksTwice(ref string) bool {
	n := 0
	for _, s := range u.steps {
		if s.does == "book" && s.id == ref {
			n++
		}
	}
	return n > 1
}
