package contract

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var cursorClaims = []claim{
	{"a list that is read on by its cursor skips and repeats nothing while it grows", cursors},
	{"sessions are filtered by label, country and creation", sessionFilters},
}

// readOn reads a whole list by cursor, two items at a time, and calls grow between the pages.
func readOn(t *testing.T, grow func(), list func(domain.Page) (ids []string, next int64)) (all []string) {
	t.Helper()
	page := domain.Page{Number: 1, Size: 2}
	for range 20 {
		ids, next := list(page)
		all = append(all, ids...)
		if next == 0 {
			return all
		}
		page.After = next
		grow()
	}
	t.Fatalf("the list has no end: %v", all)
	return nil
}

func cursors(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 5)
	addSessions(t, st, list...)
	list[1].Status = session.Terminated
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Put(ctx, list[1]) })
	more := 0
	another := func() {
		more++
		s := manySessions("agt_1", 1)[0]
		s.ID = fmt.Sprintf("sess_more_%d", more)
		addSessions(t, st, s)
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Events().Append(ctx, list[0].ID, []eventlog.Event{{ID: fmt.Sprintf("evt_more_%d", more), At: storeNow}})
		})
	}
	sessions := func(f ports.SessionFilter) func(domain.Page) ([]string, int64) {
		return func(page domain.Page) (ids []string, next int64) {
			view(t, st, func(ctx context.Context, tx ports.Tx) error {
				got, err := tx.Sessions().List(ctx, "agt_1", f, page)
				ids, next = readIDs(got.Items), got.Next
				return err
			})
			return ids, next
		}
	}
	want := []string{list[4].ID, list[3].ID, list[2].ID, list[1].ID, list[0].ID}
	if diff := cmp.Diff(want, readOn(t, another, sessions(ports.SessionFilter{}))); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	active := slices.Delete(slices.Clone(want), 3, 4)
	got := readOn(t, another, sessions(ports.SessionFilter{Status: session.Active}))
	if i := slices.Index(got, active[0]); i < 0 || !slices.Equal(got[i:], active) || len(got) != len(active)+2 {
		t.Errorf("active sessions %v, want two new ones and %v", got, active)
	}

	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		var added []eventlog.Event
		for i := range 5 {
			added = append(added, eventlog.Event{ID: fmt.Sprintf("evt_%d", i), At: storeNow})
		}
		return tx.Events().Append(ctx, list[2].ID, added)
	})
	events := readOn(t, func() {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Events().Append(ctx, list[2].ID, []eventlog.Event{{ID: "evt_late", At: storeNow}})
		})
	}, func(page domain.Page) (ids []string, next int64) {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Events().Page(ctx, list[2].ID, page)
			for _, e := range got.Items {
				ids = append(ids, e.ID)
			}
			next = got.Next
			return err
		})
		return ids, next
	})
	if diff := cmp.Diff([]string{"evt_4", "evt_3", "evt_2", "evt_1", "evt_0"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func sessionFilters(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 4)
	for i, l := range []session.Labels{{"team": "prices", "env": "prod"}, {"team": "Prices"}, {"team": "prices", "x": "team:prices"}, nil} {
		list[i].Labels = l
		list[i].Location = session.Location{Country: []string{"DE", "US"}[i%2]}
		list[i].CreatedAt = storeNow.Add(time.Duration(i) * time.Hour)
	}
	addSessions(t, st, list...)
	for _, c := range []struct {
		filter ports.SessionFilter
		want   []int
	}{
		{ports.SessionFilter{LabelKey: "team", LabelValue: "prices"}, []int{2, 0}},
		{ports.SessionFilter{LabelKey: "env", LabelValue: "prod"}, []int{0}},
		{ports.SessionFilter{LabelKey: "team", LabelValue: "price"}, nil},
		{ports.SessionFilter{LabelKey: "team", LabelValue: "%"}, nil},
		{ports.SessionFilter{Country: "US"}, []int{3, 1}},
		{ports.SessionFilter{From: storeNow.Add(time.Hour), To: storeNow.Add(3 * time.Hour)}, []int{2, 1}},
		{ports.SessionFilter{Country: "DE", To: storeNow.Add(time.Hour), LabelKey: "team", LabelValue: "prices"}, []int{0}},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Sessions().List(ctx, "agt_1", c.filter, domain.Page{Number: 1, Size: 10})
			var want []string
			for _, i := range c.want {
				want = append(want, list[i].ID)
			}
			if diff := cmp.Diff(want, readIDs(got.Items)); diff != "" || got.Total != len(want) || got.Next != 0 {
				t.Errorf("%+v: total %d, next %d (-want +got):\n%s", c.filter, got.Total, got.Next, diff)
			}
			for _, r := range got.Items {
				i := slices.IndexFunc(list, func(s session.Session) bool { return s.ID == r.ID })
				if diff := cmp.Diff(list[i].Labels, r.Labels); diff != "" {
					t.Errorf("labels of %s (-want +got):\n%s", r.ID, diff)
				}
			}
			return err
		})
	}
}
