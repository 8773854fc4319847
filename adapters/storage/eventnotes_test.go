package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// changesFrom returns a function that lists what was noted since its last call.
func changesFrom(t *testing.T, st *storage.Store) func() []ports.Change {
	t.Helper()
	var at ports.Cursor
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		at, err = tx.Changes().Last(ctx)
		return err
	})
	return func() (list []ports.Change) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			list, at, err = tx.Changes().Since(ctx, at, 1000)
			return err
		})
		return list
	}
}

func appendFor(ctx context.Context, tx ports.Tx, agentID, id string) error {
	return tx.Outbox().Append(ctx, webhook.Event{ID: id, AgentID: agentID, Type: webhook.BalanceLow, At: now,
		Data: map[string]string{"n": "1"}})
}

// Events of a moment are noted together, each agent once, behind the units that appended them, and those of units that
// failed not at all.
func TestEventsAreNotedTogetherBehindTheirUnits(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		noted := changesFrom(t, st)
		var want []ports.Change
		for i := range 250 {
			id := fmt.Sprintf("agt_%03d", i)
			want = append(want, ports.Change{Feed: id})
			update(t, st, func(ctx context.Context, tx ports.Tx) error {
				return errors.Join(appendFor(ctx, tx, id, id+"a"), appendFor(ctx, tx, id, id+"b"))
			})
		}
		refused := errors.New("refused")
		err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(appendFor(ctx, tx, "agt_refused", "evt_refused"), refused)
		})
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}
		if list := noted(); len(list) != 0 {
			t.Errorf("before they are noted %+v is", list)
		}
		if err := st.FlushEventNotes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list := noted(); !slices.Equal(list, want) {
			t.Errorf("noted is %+v", list)
		}
		var rows int
		if err := st.Writer().QueryRow("SELECT COUNT(*) FROM changes WHERE agent_id LIKE '+%'").Scan(&rows); err != nil || rows != 3 {
			t.Errorf("they take %d rows: %v", rows, err)
		}
	})
}

// What could not be noted is noted later, and what is left at the end when the store is closed.
func TestNotesOfEventsOutliveARefusalAndAreWrittenAtTheEnd(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		noted := changesFrom(t, st)
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return appendFor(ctx, tx, "agt_1", "evt_1") })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := st.FlushEventNotes(ended); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { st.NoteEvents(ctx); close(done) }()
		eventually(t, "the note", func() bool { return slices.Equal(noted(), []ports.Change{{Feed: "agt_1"}}) })
		stop()
		<-done

		update(t, st, func(ctx context.Context, tx ports.Tx) error { return appendFor(ctx, tx, "agt_2", "evt_2") })
		other, err := storage.Open(t.Context(), st.Config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		noted = changesFrom(t, other)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if list := noted(); !slices.Equal(list, []ports.Change{{Feed: "agt_2"}}) {
			t.Errorf("at the end %+v was noted", list)
		}
	})
}
