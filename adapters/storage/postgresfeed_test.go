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
	"agentproxy/domain/health"
	"agentproxy/ports"
)

// appendAhead appends n events to the feed of a session, whose ids begin with a prefix, and ends
// with an error.
func appendAhead(st ports.Store, id, prefix string, n int, end error) error {
	added := make([]eventlog.Event, n)
	for i := range added {
		added[i] = eventlog.Event{ID: fmt.Sprint(prefix, i), At: now, Type: "success"}
	}
	reads := ports.ReadSet{Agent: "agt_1", Health: []string{id}}
	return st.Update(context.Background(), reads, func(ctx context.Context, tx ports.Tx) error {
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
	g := closeGateFor(t.Context(), ofAgent, t, st)
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

// A batch numbers the events of a session by what it read, and goes on behind those of older programs,
// which look for the last number and do not keep it.
func TestABatchNumbersEventsBehindThoseOfOthers(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	if err := buyAhead(t.Context(), st, "agt_1", 0, nothing); err != nil {
		t.Fatal(err)
	}
	id, total := sessionID(0), int64(0)
	ahead := func(n int) func() error {
		return func() error { return appendAhead(st, id, fmt.Sprint(total, "-"), n, nil) }
	}
	alone := func() error {
		return st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return tx.Events().Append(ctx, id, []eventlog.Event{{ID: "alone", At: now, Type: "success"}})
		})
	}
	report := func() error {
		reads := ports.ReadSet{Agent: "agt_1", Health: []string{id}}
		return st.Update(context.Background(), reads, func(ctx context.Context, tx ports.Tx) error {
			return tx.Health().Put(ctx, id, health.State{})
		})
	}
	older := func() error {
		_, err := st.Pool().Exec(context.Background(), `INSERT INTO event_chunks (session, last_no, n, last_at, body)
			SELECT s.seq, COALESCE((SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = s.seq), 0) + 4, 4, 0, ''
			FROM sessions s WHERE s.id = $1`, id)
		return err
	}
	for i, step := range []struct {
		n   int64
		run func() error
	}{
		{2, ahead(2)}, {0, report}, {3, ahead(3)}, {1, ahead(1)}, {1, alone}, {codec.MaxEvents + 5, ahead(codec.MaxEvents + 5)},
		{4, older}, {2, ahead(2)}, {0, report}, {4, older}, {1, alone}, {1, ahead(1)},
	} {
		if err := step.run(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		total += step.n
		var last, stored int64
		err := st.Pool().QueryRow(t.Context(), "SELECT COALESCE(MAX(last_no), 0), COALESCE(SUM(n), 0) FROM event_chunks").Scan(&last, &stored)
		if err != nil || last != total || stored != total {
			t.Fatalf("step %d: the last of %d events is number %d, want %d (%v)", i, stored, last, total, err)
		}
		if i == 0 {
			continue // there is no health yet
		}
		var kept int64
		err = st.Pool().QueryRow(t.Context(), "SELECT COALESCE(last_no, 0) FROM session_health").Scan(&kept)
		if err != nil || i > 1 && kept != total {
			t.Fatalf("step %d: %d is kept as the last number, want %d (%v)", i, kept, total, err)
		}
	}
}
