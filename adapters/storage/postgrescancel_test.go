package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// A cancelled caller gets context.Canceled, which is not a failure of the database.
func TestWhoLeavesIsNoFailureOfPostgres(t *testing.T) {
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	// A busy machine may need more than that for what is to succeed before.
	patience := 200 * time.Millisecond
	for name, run := range map[string]func(context.Context, func(context.Context, ports.Tx) error) error{"View": st.View, "Look": st.Read} {
		for want, leave := range map[error]func() (context.Context, func()){
			context.Canceled: func() (context.Context, func()) {
				ctx, cancel := context.WithCancel(t.Context())
				return ctx, cancel
			},
			context.DeadlineExceeded: func() (context.Context, func()) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				return ctx, func() { <-ctx.Done(); cancel() }
			},
		} {
			for statement, ask := range map[string]func(context.Context, ports.Tx) error{
				"that was prepared": addressesOf,
				"that is new": func(ctx context.Context, tx ports.Tx) error {
					_, err := tx.Recharges().Overdue(ctx, "tron", now, 1)
					return err
				},
			} {
				var err error
				for before := false; !before; {
					ctx, left := leave()
					err = run(ctx, func(ctx context.Context, tx ports.Tx) error {
						if err := addressesOf(ctx, tx); err != nil {
							return err
						}
						before = true
						left()
						return ask(ctx, tx)
					})
					if !before && (ctx.Err() == nil || patience > 20*time.Second) {
						t.Fatalf("%s before: %v", name, err)
					} else if !before {
						patience *= 2
					}
				}
				if !errors.Is(err, want) || errors.Is(err, domain.ErrUnavailable) {
					t.Errorf("%s with a statement %s: %v, want %v", name, statement, err, want)
				}
				view(t, st, addressesOf)
			}
		}
	}
}

func addressesOf(ctx context.Context, tx ports.Tx) error {
	_, err := tx.Recharges().Addresses(ctx, "tron", 1)
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
	err := st.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
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
			ended <- st.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
				if err := count("before", succeed)(ctx, tx); err != nil {
					return err
				}
				close(begun)
				<-looked
				return count("after", fail)(ctx, tx)
			})
		}()
		select {
		case <-begun:
		case <-time.After(time.Second): // it waits for the connection, which is as well
		}
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
