package chain

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake"
	"agentproxy/test/pg"
)

func openStore(t *testing.T) *storage.Store {
	t.Helper()
	st, err := storage.Open(t.Context(), storage.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func openPostgres(t *testing.T) *storage.Store {
	t.Helper()
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(pg.Database(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// world is a development chain and what it runs on.
type world struct {
	store ports.Store
	clock *fake.Clock
	ids   *fake.IDs
}

func newWorld(t *testing.T) world {
	return world{store: openStore(t), clock: fake.NewClock(), ids: new(fake.IDs)}
}

func (w world) chain(every time.Duration) *Devchain {
	return NewDevchain(w.store, w.clock, w.ids, DevchainConfig{BlockEvery: every})
}

func heads(t *testing.T, c *Devchain) recharge.Heads {
	t.Helper()
	h, err := c.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func send(t *testing.T, c *Devchain, amount domain.Money) recharge.Transfer {
	t.Helper()
	tr, err := c.Send(t.Context(), vectors[0].address, amount)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestDevchainContract(t *testing.T) {
	contract.Chain(t, func(t *testing.T) contract.ChainFixture {
		w := newWorld(t)
		c := w.chain(time.Second)
		heads(t, c)
		return contract.ChainFixture{Chain: c, A: devFaucet, B: vectors[0].address,
			Advance: func(blocks int) { w.clock.Advance(time.Duration(blocks) * time.Second) },
			Send: func(from, to string, amount domain.Money) recharge.Key {
				tr, err := c.send(t.Context(), from, to, amount)
				if err != nil {
					t.Fatal(err)
				}
				return tr.Key
			}}
	})
}

func TestASentTransferIsInTheNextBlock(t *testing.T) {
	w := newWorld(t)
	c := w.chain(0)
	before := heads(t, c)
	if before.Latest != (recharge.Head{Number: devStart, Time: w.clock.Now()}) || before.Final.Number != devStart-devRequired ||
		!before.Final.Time.Equal(w.clock.Now().Add(-devRequired*devEvery)) {
		t.Errorf("a new chain has the heads %+v", before)
	}
	want := send(t, c, 10_010_000)
	if want.Block != before.Latest.Number+1 || !want.BlockTime.Equal(before.Latest.Time.Add(devEvery)) ||
		want.From != devFaucet || !c.Valid(devFaucet) || len(want.TxID) != 64 || want.Amount != 10_010_000 || want.To != vectors[0].address {
		t.Errorf("the transfer is %+v", want)
	}
	for _, step := range []struct {
		after time.Duration // the last
		state recharge.State
	}{
		{0, ""}, {devEvery - time.Microsecond, ""}, {time.Microsecond, recharge.Seen},
		{devRequired*devEvery - time.Microsecond, recharge.Seen}, {time.Microsecond, recharge.Final}, {time.Hour, recharge.Final},
	} {
		w.clock.Advance(step.after)
		var list []recharge.Transfer
		if step.state != "" {
			want.State = step.state
			list = []recharge.Transfer{want}
		}
		byHistory, err1 := c.History(t.Context(), want.To, time.Time{})
		byID, err2 := c.Transaction(t.Context(), want.TxID)
		if err := errors.Join(err1, err2); err != nil || !same(byHistory, list) || !same(byID, list) {
			t.Errorf("at %v: %+v and %+v, %v; want %+v", w.clock.Now(), byHistory, byID, err, list)
		}
		byBlock, err := c.Incoming(t.Context(), []string{want.To}, want.Block, want.Block)
		if err != nil || !same(byBlock, list) {
			t.Errorf("at %v the block has %+v, %v", w.clock.Now(), byBlock, err)
		}
		balance, err := c.Balance(t.Context(), want.To)
		if held := step.state == recharge.Final; err != nil || held != (balance == want.Amount) || !held && balance != 0 {
			t.Errorf("at %v the balance is %v, %v", w.clock.Now(), balance, err)
		}
	}
}

func same(a, b []recharge.Transfer) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	c := newWorld(t).chain(0)
	for _, bad := range []struct {
		to     string
		amount domain.Money
	}{
		{vectors[0].address, 0}, {vectors[0].address, -1}, {"", 1}, {vectors[0].address + " ", 1}, {checked(0), 1},
		{"41c8599111f29c1e1e061265b4af93ea1f274ad78a", 1},
	} {
		var refusal *domain.Error
		if tr, err := c.Send(t.Context(), bad.to, bad.amount); !errors.As(err, &refusal) || refusal.Kind != domain.Invalid {
			t.Errorf("%v to %q: %+v, %v", bad.amount, bad.to, tr, err)
		}
	}
	for _, bad := range []string{"", "41c8599111f29c1e1e061265b4af93ea1f274ad78a"} {
		if list, err := c.History(t.Context(), bad, time.Time{}); err == nil {
			t.Errorf("the history of %q is %v", bad, list)
		}
		if sum, err := c.Balance(t.Context(), bad); err == nil {
			t.Errorf("the balance of %q is %v", bad, sum)
		}
	}
	if list, err := c.Incoming(t.Context(), []string{"T"}, 0, 10); err == nil {
		t.Errorf("the transfers to no address are %v", list)
	}
}

// TestAnotherPaceGoesOn starts the service again and again, each time with
// another time for a block: the numbers and the times of the latest blocks go
// on, and the final head covers every transfer up to its time.
func TestAnotherPaceGoesOn(t *testing.T) {
	w := newWorld(t)
	var sent []recharge.Transfer
	var last recharge.Heads
	for _, every := range []time.Duration{3 * time.Second, 100 * time.Millisecond, time.Minute, time.Hour, 0, time.Microsecond, time.Second} {
		c := w.chain(every)
		h := heads(t, c)
		if h.Latest.Number < last.Latest.Number || h.Latest.Time.Before(last.Latest.Time) || h.Final.Number < last.Final.Number {
			t.Errorf("every %v: the heads go from %+v to %+v", every, last, h)
		}
		if again := heads(t, w.chain(every)); again != h {
			t.Errorf("every %v: a second start moves the heads from %+v to %+v", every, h, again)
		}
		if h.Latest.Time.After(w.clock.Now()) {
			t.Errorf("every %v: the latest block is of the future: %+v", every, h)
		}
		if every > 0 && h.Latest.Time.Sub(h.Final.Time) != devRequired*every {
			t.Errorf("every %v: the heads are %v apart", every, h.Latest.Time.Sub(h.Final.Time))
		}
		for _, tr := range sent {
			if !tr.BlockTime.After(h.Final.Time) && tr.Block > h.Final.Number {
				t.Errorf("every %v: the final head %+v is past %+v", every, h.Final, tr)
			}
			list, err := c.Transaction(t.Context(), tr.TxID)
			if err != nil || len(list) != 1 && tr.Block <= h.Latest.Number {
				t.Errorf("every %v: the transaction of %+v has %+v, %v", every, tr, list, err)
			}
		}
		for range 8 { // one in each of the latest blocks, and one in the next
			sent = append(sent, send(t, c, domain.Dollar))
			w.clock.Advance(every)
		}
		sent = append(sent, send(t, c, domain.Dollar))
		last = heads(t, c)
	}
}

func TestABlockTimeOfNothingKeepsThePace(t *testing.T) {
	w := newWorld(t)
	h := heads(t, w.chain(7*time.Second))
	w.clock.Advance(7 * time.Second)
	for _, every := range []time.Duration{0, -time.Second, time.Nanosecond} {
		if got := heads(t, w.chain(every)); got.Latest.Number != h.Latest.Number+1 {
			t.Errorf("with %v the heads are %+v after %+v", every, got, h)
		}
	}
}

func TestAClockThatIsFarBackLeavesAFinalBlock(t *testing.T) {
	w := newWorld(t)
	c := w.chain(0)
	heads(t, c)
	w.clock.Advance(-1000 * time.Hour)
	if h := heads(t, c); h.Final.Number < 0 || h.Final.Time.After(h.Latest.Time) {
		t.Errorf("the heads are %+v", h)
	}
}

// slowStore lets the clock run on while a unit waits for its commit.
type slowStore struct {
	ports.Store
	clock *fake.Clock
	ran   chan struct{} // room for one
}

func (s slowStore) Update(ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		err := fn(ctx, tx)
		s.clock.Advance(10 * time.Second)
		s.ran <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		return err
	})
}

// TestHeadsWaitForWhatIsBeingSent is the promise of Heads: what is read after it
// is complete up to them.
func TestHeadsWaitForWhatIsBeingSent(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *storage.Store{"sqlite": openStore, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) { headsWait(t, open(t)) })
	}
}

// headsWait reads the heads as another process would.
func headsWait(t *testing.T, st ports.Store) {
	w := world{store: st, clock: fake.NewClock(), ids: new(fake.IDs)}
	other := w.chain(time.Second)
	heads(t, other)
	slow := slowStore{Store: w.store, clock: w.clock, ran: make(chan struct{}, 1)}
	c := NewDevchain(slow, w.clock, w.ids, DevchainConfig{})
	c.begun = true
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Send(t.Context(), vectors[0].address, domain.Dollar); err != nil {
			t.Error(err)
		}
	})
	<-slow.ran
	h := heads(t, other)
	list, err := other.History(t.Context(), vectors[0].address, time.Time{})
	wg.Wait()
	if err != nil || len(list) != 1 || list[0].Block > h.Latest.Number {
		t.Errorf("the heads are %+v and the history %+v, %v", h, list, err)
	}
}

func TestModulesAreComplete(t *testing.T) {
	for name, options := range map[string]fx.Option{
		"development": fx.Options(DevModule, fx.Supply(DevchainConfig{Seed: make([]byte, 32)}),
			fx.Provide(func() ports.Store { return nil }, func() ports.Clock { return nil }, func() ports.IDs { return nil }),
			fx.Invoke(func(*Devchain) {})),
		"TRON": fx.Options(TronModule, fx.Supply(TronConfig{Network: "tron-nile"}, account(t))),
	} {
		var key ports.Deriver
		var chain ports.Chain
		app := fx.New(options, fx.NopLogger, fx.Populate(&key, &chain))
		if err := app.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if address, err := key.Address(0); err != nil || !chain.Valid(address) {
			t.Errorf("%s: the first address is %s, %v", name, address, err)
		}
	}
}
