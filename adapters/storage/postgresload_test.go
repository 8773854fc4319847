package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
)

// How many debits compete, how much one takes, and how many try at once in each
// of two processes.
const (
	debit      = domain.Money(10_000)
	competitor = 16
)

var debits = int64(campaign.Rounds(1_000, 10_000))

// Two processes debit one wallet that has money for half of it.
func TestOfTheDebitsHalfSucceed(t *testing.T) {
	t.Parallel()
	if url := os.Getenv("STORAGE_TEST_DEBIT_AT"); url != "" {
		debitHalf(t, url, os.Getenv("STORAGE_TEST_DEBIT_AS"))
		return
	}
	if testing.Short() {
		t.Skip("it takes a while")
	}
	url := pg.Database(t)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Money(debits/2)*debit)
	var wg sync.WaitGroup
	for process := range 2 {
		wg.Go(func() {
			child := exec.Command(os.Args[0], "-test.run", "^TestOfTheDebitsHalfSucceed$")
			child.Env = append(os.Environ(), "STORAGE_TEST_DEBIT_AT="+url, fmt.Sprint("STORAGE_TEST_DEBIT_AS=", process))
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", process, err, out)
			}
		})
	}
	wg.Wait()
	if entries := int64(verify(t, st)); entries != debits/2+1 {
		t.Errorf("%d debits succeeded of %d with money for half", entries-1, debits)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		w, err := tx.Ledger().Wallet(ctx, "agt_1")
		if w.Balance() != 0 {
			t.Errorf("%v is left", w.Balance())
		}
		return err
	})
}

// debitHalf is one of the processes: half of the debits. Every one is answered
// with success or with a lack of money.
func debitHalf(t *testing.T, url, process string) {
	st := openURL(t, url)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range competitor {
		wg.Go(func() {
			for n := next.Add(1); n <= debits/2; n = next.Add(1) {
				ref := fmt.Sprint("debit:", process, ":", n)
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					w, err := tx.Ledger().Wallet(ctx, "agt_1")
					if err != nil {
						return err
					}
					e, err := w.Adjust(-debit, "debit")
					if err != nil {
						return err
					}
					e.ID, e.AgentID, e.Ref, e.At = "txn_"+ref, "agt_1", ref, now
					_, err = tx.Ledger().Post(ctx, ports.Posting{Entry: e})
					return err
				})
				if err != nil && !errors.Is(err, billing.ErrInsufficientBalance) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Money moves between eight accounts in any order, over two pools, while a
// reader adds it up: the sum is always the same.
func TestABankNeverShowsAWrongTotal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a while")
	}
	const accounts, each = 8, 1_000_000
	transfers := int64(campaign.Rounds(600, 20_000))
	url := pg.Database(t)
	stores := []*storage.Store{openURL(t, url), openURL(t, url)}
	ids := make([]string, accounts)
	for i := range ids {
		ids[i] = fmt.Sprint("agt_", i)
		addAgent(t, stores[0], ids[i], each)
	}
	var reader, writers sync.WaitGroup
	looks := make(chan struct{}, 1) // one for some transfers: it looks, it does not compete
	reader.Go(func() {
		for range looks {
			var sum domain.Money
			err := stores[1].View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				sum = 0
				for _, id := range ids {
					w, err := tx.Ledger().Wallet(ctx, id)
					if err != nil {
						return err
					}
					sum += w.Balance()
				}
				return nil
			})
			if err != nil || sum != accounts*each {
				t.Errorf("the accounts hold %d, want %d: %v", sum, accounts*each, err)
			}
		}
	})
	var next atomic.Int64
	for worker := range 16 {
		writers.Go(func() {
			chance := rand.New(rand.NewPCG(1, uint64(worker)))
			for n := next.Add(1); n <= transfers; n = next.Add(1) {
				from := chance.IntN(accounts)
				to := (from + 1 + chance.IntN(accounts-1)) % accounts
				amount := domain.Money(1 + chance.IntN(50_000))
				err := transfer(t.Context(), stores[worker%2], ids[from], ids[to], amount, n)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case looks <- struct{}{}:
				default:
				}
			}
		})
	}
	writers.Wait()
	close(looks)
	reader.Wait()
	verify(t, stores[0])
}

// transfer moves money if there is any. Wallets are locked in the order of their
// ids; without it the server would break deadlocks, which takes it a second each.
func transfer(ctx context.Context, st *storage.Store, from, to string, amount domain.Money, n int64) error {
	err := st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		for _, id := range []string{min(from, to), max(from, to)} {
			if _, err := tx.Ledger().Wallet(ctx, id); err != nil {
				return err
			}
		}
		for _, part := range []struct {
			id     string
			amount domain.Money
		}{{from, -amount}, {to, amount}} {
			e := billing.Entry{AgentID: part.id, Type: billing.Adjustment, Available: billing.Funds{Own: part.amount},
				Account: billing.Corrections, Counter: -part.amount, At: now, Ref: fmt.Sprint("transfer:", n, ":", part.id)}
			e.ID = "txn_" + e.Ref
			if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, billing.ErrInsufficientBalance) {
		return nil
	}
	return err
}
