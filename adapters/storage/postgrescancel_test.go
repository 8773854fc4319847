package storage_test

import (
	"context"
	"errors"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// A cancelled caller gets context.Canceled, which is not a failure of the database.
func TestWhoLeavesIsNoFailureOfPostgres(t *testing.T) {
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	bare := func(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
		return st.View(ctx, ports.ReadSet{}, fn)
	}
	for name, run := range map[string]func(context.Context, func(context.Context, ports.Tx) error) error{"View": bare, "Look": st.Read} {
		for want, leave := range map[error]func() (context.Context, func()){
			context.Canceled: func() (context.Context, func()) {
				ctx, cancel := context.WithCancel(t.Context())
				return ctx, cancel
			},
			context.DeadlineExceeded: func() (context.Context, func()) {
				ctx := late{context.Background(), make(chan struct{})}
				return ctx, func() { close(ctx.over) }
			},
		} {
			for statement, ask := range map[string]func(context.Context, ports.Tx) error{
				"that was prepared": addressesOf,
				"that is new": func(ctx context.Context, tx ports.Tx) error {
					_, err := tx.Recharges().Overdue(ctx, "tron", now, 1)
					return err
				},
			} {
				ctx, left := leave()
				err := run(ctx, func(ctx context.Context, tx ports.Tx) error {
					if err := addressesOf(ctx, tx); err != nil {
						return errors.Join(errUnit, err)
					}
					left()
					return ask(ctx, tx)
				})
				if !errors.Is(err, want) || errors.Is(err, domain.ErrUnavailable) || errors.Is(err, errUnit) {
					t.Errorf("%s with a statement %s: %v, want %v", name, statement, err, want)
				}
				view(t, st, addressesOf)
			}
		}
	}
}

// late is a context whose deadline passes when over is closed.
type late struct {
	context.Context
	over chan struct{}
}

func (l late) Done() <-chan struct{} { return l.over }

func (l late) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func addressesOf(ctx context.Context, tx ports.Tx) error {
	_, err := tx.PayAddresses().Addresses(ctx, "tron", 1)
	return err
}

// So is one that left a unit which then failed for the database.
func TestWhoLeavesAUnitOfPostgres(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, pg.With(url, "lock_timeout", "100ms"))
	addAgent(t, st, "agt_1", domain.Dollar)
	holdWallets(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	err := st.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		cancel()
		return setLive(ctx, tx) // waits too long
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// The driver gives a connection back as soon as a statement's context has ended.
// The end of the first unit sends nothing on it: another unit may use it.
func TestALookThatEndsLeavesTheUnitsOfOthersAlone(t *testing.T) {
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	begun, looked, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err = st.Read(ctx, func(ctx context.Context, tx ports.Tx) error {
		cancel()
		err := addressesOf(ctx, tx)
		go func() {
			ended <- st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				if err := count("before", succeed)(ctx, tx); err != nil {
					return err
				}
				close(begun)
				<-looked
				return count("after", fail)(ctx, tx)
			})
		}()
		eventually(t, "the other unit begins, or waits for the connection, which is as well", func() bool {
			select {
			case <-begun:
				return true
			default:
				return series(t, st)["agentproxy_database_pool_waits_total"] > 0
			}
		})
		return err
	})
	close(looked)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Look returned %v", err)
	}
	if err := <-ended; !errors.Is(err, errUnit) {
		t.Errorf("Update returned %v", err)
	}
	wantCounted(t, st, map[string]int64{"before": 0, "after": 0})
}
