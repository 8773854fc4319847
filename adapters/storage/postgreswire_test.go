package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// Each wait for the server costs a round trip.
func TestAPurchaseWaitsForTheServerFewTimes(t *testing.T) {
	w, url := link.New(t, pg.Database(t), 0)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", domain.Dollar)
	buy := func(n int64) {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			if _, _, err := tx.Idempotency().Find(ctx, "agt_1", "/sessions", fmt.Sprint(n), now); err != nil {
				return err
			}
			return purchase(ctx, tx, "agt_1", n)
		})
	}
	buy(1) // prepares its statements
	before := w.Asked()
	buy(2)
	// BEGIN, the key with its lock, the wallet, the posting, the three inserts together, COMMIT.
	if n := w.Asked() - before; n != 6 {
		t.Errorf("the server was asked %d times, want 6", n)
	}
}

// The failure of a queued statement is that of its unit, whatever the next statement is, and names
// what the statement does.
func TestWhatIsHeldBackFailsItsUnit(t *testing.T) {
	for name, next := range map[string]func(context.Context, ports.Tx) error{
		"the end":       func(context.Context, ports.Tx) error { return nil },
		"a row":         func(ctx context.Context, tx ports.Tx) error { _, err := tx.Ledger().Wallet(ctx, "agt_1"); return err },
		"a list":        func(ctx context.Context, tx ports.Tx) error { _, err := tx.Sessions().Live(ctx, "agt_1"); return err },
		"a change":      func(ctx context.Context, tx ports.Tx) error { return tx.Ledger().SetLive(ctx, "agt_1", "", 1) },
		"a row by GORM": func(ctx context.Context, tx ports.Tx) error { _, err := tx.Referrers().Default(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := openPostgres(t)
			addAgent(t, st, "agt_1", 100)
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				twice := dynamicSession("agt_1", "sess_1")
				if err := errors.Join(tx.Sessions().Insert(ctx, twice), tx.Sessions().Insert(ctx, twice)); err != nil {
					return err
				}
				return next(ctx, tx)
			})
			if err == nil || !strings.Contains(err.Error(), "insert session sess_1") {
				t.Errorf("got %v", err)
			}
			view(t, st, func(ctx context.Context, tx ports.Tx) error {
				if _, err := tx.Sessions().Load(ctx, "sess_1"); err == nil {
					t.Error("something of the unit is kept")
				}
				return nil
			})
		})
	}
}
