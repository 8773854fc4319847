package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/ports"
)

// appendAhead appends n events to the feed of a session, whose ids begin with a prefix, and ends
// with an error.
func appendAhead(st ports.Store, id, prefix string, n int, end error) error {
	added := make([]eventlog.Event, n)
	for i := range added {
		added[i] = eventlog.Event{ID: fmt.Sprint(prefix, i), At: now, Type: "success"}
	}
	reads := ports.WithReadSet(context.Background(), ports.ReadSet{Agent: "agt_1", Health: []string{id}})
	return st.Update(reads, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Events().Append(ctx, id, added), end)
	})
}

// The events that the units of a batch append to a session are one row, as far as a row holds them:
// in the order of the units, without those of a unit that failed, and numbered behind those from
// before.
func TestABatchStoresTheEventsOfASessionTogether(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	ids := []string{sessionID(0), sessionID(1)}
	for n := range int64(2) {
		if err := buyAhead(t.Context(), st, "agt_1", n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendAhead(st, ids[0], "before-", 2, nil); err != nil {
		t.Fatal(err)
	}
	g := closeGateFor(ports.WithReadSet(t.Context(), ofAgent), t, st)
	for _, u := range []struct {
		id, prefix string
		n          int
		end        error
	}{
		{ids[0], "a-", 3, nil}, {ids[1], "b-", codec.MaxEvents - 1, nil}, {ids[0], "failed-", 5, errUnit},
		{ids[0], "c-", 2, nil}, {ids[1], "d-", 3, nil},
	} {
		g.queue(want(t, u.prefix, u.end, func() error { return appendAhead(st, u.id, u.prefix, u.n, u.end) }))
	}
	g.pass()
	var rows []int64
	if err := st.Pool().QueryRow(t.Context(), "SELECT array_agg(n ORDER BY session, last_no) FROM event_chunks").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if want := []int64{2, 5, codec.MaxEvents, 2}; !slices.Equal(rows, want) {
		t.Errorf("the rows have %v events, want %v", rows, want)
	}
	feed := func(id string, page domain.Page) (names []string, total int) {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Events().Page(ctx, id, page)
			for _, e := range list.Items {
				names = append(names, e.ID)
			}
			total = list.Total
			return err
		})
		return names, total
	}
	wanted := []string{"c-1", "c-0", "a-2", "a-1", "a-0", "before-1", "before-0"}
	if got, total := feed(ids[0], domain.Page{Number: 1, Size: 10}); !slices.Equal(got, wanted) || total != len(wanted) {
		t.Errorf("%d events %v, want %v", total, got, wanted)
	}
	// The cursor of the first page, 5, is the number of the oldest event on it.
	if got, _ := feed(ids[0], domain.Page{Number: 1, Size: 3, After: 5}); !slices.Equal(got, wanted[3:6]) {
		t.Errorf("the page after the fifth event is %v", got)
	}
	if got, total := feed(ids[1], domain.Page{Number: 1, Size: 4}); total != codec.MaxEvents+2 || got[0] != "d-2" || got[3] != fmt.Sprint("b-", codec.MaxEvents-2) {
		t.Errorf("%d events, the last are %v", total, got)
	}
}
