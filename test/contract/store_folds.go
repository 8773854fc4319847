package contract

import (
	"context"
	"errors"
	"sync"
	"testing"

	"agentproxy/ports"
)

var foldClaims = []claim{
	{"a cursor is zero at first, and read back as it was put", foldRoundTrip},
	{"a cursor is put with its unit or not at all", foldRollsBack},
	{"units that read a cursor come one after another", foldSerial},
}

// moveFold runs a unit that changes a cursor. ahead is whether the unit declares what it reads.
func moveFold(ctx context.Context, st ports.Store, queue string, ahead bool, move func(*ports.FoldCursor) error) error {
	var reads ports.ReadSet
	if ahead {
		reads = ports.ReadSet{Agent: "agt_1", Fold: queue}
	}
	return st.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		c, err := tx.Folds().Cursor(ctx, queue)
		if err != nil {
			return err
		}
		if err := move(&c); err != nil {
			return err
		}
		return tx.Folds().Put(ctx, queue, c)
	})
}

// wantFold reads a cursor in a unit that it then fails.
func wantFold(t *testing.T, st ports.Store, queue string, want ports.FoldCursor) {
	t.Helper()
	done := errors.New("done")
	err := moveFold(t.Context(), st, queue, false, func(c *ports.FoldCursor) error {
		if *c != want {
			t.Errorf("queue %s is at %+v, want %+v", queue, *c, want)
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Error(err)
	}
}

func foldRoundTrip(t *testing.T, st ports.Store) {
	for _, ahead := range []bool{false, true} {
		wantFold(t, st, "7", ports.FoldCursor{})
		for seq := uint64(1); seq < 4; seq++ {
			at := ports.FoldCursor{Stream: "a", Seq: seq << 40}
			if err := moveFold(t.Context(), st, "7", ahead, func(c *ports.FoldCursor) error { *c = at; return nil }); err != nil {
				t.Fatal(err)
			}
			wantFold(t, st, "7", at)
		}
		if err := moveFold(t.Context(), st, "7", ahead, func(c *ports.FoldCursor) error { *c = ports.FoldCursor{}; return nil }); err != nil {
			t.Fatal(err)
		}
		wantFold(t, st, "8", ports.FoldCursor{})
	}
}

func foldRollsBack(t *testing.T, st ports.Store) {
	at := ports.FoldCursor{Stream: "a", Seq: 5}
	if err := moveFold(t.Context(), st, "7", false, func(c *ports.FoldCursor) error { *c = at; return nil }); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	for _, ahead := range []bool{false, true} {
		var reads ports.ReadSet
		if ahead {
			reads = ports.ReadSet{Agent: "agt_1", Fold: "7"}
		}
		err := st.Update(t.Context(), reads, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Folds().Cursor(ctx, "7")
			return errors.Join(err, tx.Folds().Put(ctx, "7", ports.FoldCursor{Stream: "b", Seq: 9}), failed)
		})
		if !errors.Is(err, failed) {
			t.Error(err)
		}
		wantFold(t, st, "7", at)
	}
}

func foldSerial(t *testing.T, st ports.Store) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := moveFold(t.Context(), st, "7", i%2 == 0, func(c *ports.FoldCursor) error { c.Seq++; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantFold(t, st, "7", ports.FoldCursor{Seq: 20})
}
