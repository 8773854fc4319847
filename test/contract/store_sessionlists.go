package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var sessionListClaims = []claim{
	{"sessions are listed newest first, page by page and by filter", sessionLists},
	{"time is due at its end, for active static sessions", timeDue},
	{"a settlement is due when it was planned", settleDue},
	{"sessions that are creating for long are listed", creatingSince},
}

func sessionLists(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 7) // 0 and 4 are static, 5 is terminated
	for _, i := range []int{0, 4} {
		list[i].Type, list[i].ProductNo, list[i].Bytes = session.Static, "sta_1", 0
	}
	list[5].Status = session.Terminated
	addSessions(t, st, list...)
	addSessions(t, st, manySessions("agt_2", 3)...)
	for _, c := range []struct {
		filter ports.SessionFilter
		page   domain.Page
		want   []int
		total  int
	}{
		{ports.SessionFilter{}, domain.Page{Number: 1, Size: 3}, []int{6, 5, 4}, 7},
		{ports.SessionFilter{}, domain.Page{Number: 3, Size: 3}, []int{0}, 7},
		{ports.SessionFilter{}, domain.Page{Number: 4, Size: 3}, nil, 7},
		{ports.SessionFilter{}, domain.Page{Number: 1 << 62, Size: 100}, nil, 7},
		{ports.SessionFilter{Type: session.Static}, domain.Page{Number: 1, Size: 20}, []int{4, 0}, 2},
		{ports.SessionFilter{Type: session.Dynamic}, domain.Page{Number: 2, Size: 2}, []int{3, 2}, 5},
		{ports.SessionFilter{Status: session.Terminated}, domain.Page{Number: 1, Size: 20}, []int{5}, 1},
		{ports.SessionFilter{Status: session.Active, Type: session.Dynamic, ProductNo: "dyn_1"}, domain.Page{Number: 1, Size: 2}, []int{6, 3}, 4},
		{ports.SessionFilter{ProductNo: "none"}, domain.Page{Number: 1, Size: 2}, nil, 0},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Sessions().List(ctx, "agt_1", c.filter, c.page)
			var want []string
			for _, i := range c.want {
				want = append(want, list[i].ID)
			}
			if diff := cmp.Diff(want, readIDs(got.Items)); diff != "" || got.Total != c.total || got.Page != c.page {
				t.Errorf("%+v, %+v: total %d, want %d (-want +got):\n%s", c.filter, c.page, got.Total, c.total, diff)
			}
			return err
		})
	}
}

func dueIDs(t *testing.T, st ports.Store, list func(ctx context.Context, s ports.Sessions) ([]string, error)) (ids []string) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		ids, err = list(ctx, tx.Sessions())
		return err
	})
	return ids
}

func timeDue(t *testing.T, st ports.Store) {
	var list []session.Session
	for i, status := range []session.Status{session.Active, session.Active, session.Terminated, session.Active, session.Active} {
		s := staticSession("agt_1", fmt.Sprintf("sess_%d", i))
		s.Status, s.ExpiresAt = status, storeNow.Add(time.Duration(i)*time.Minute)
		list = append(list, s)
	}
	list[3].ExpiresAt = time.Time{}
	list[4].Type, list[4].ExpiresAt = session.Dynamic, storeNow
	addSessions(t, st, list...)
	for at, want := range map[time.Duration][]string{-1000: nil, 0: {"sess_0"}, time.Minute: {"sess_0", "sess_1"}, time.Hour: {"sess_0", "sess_1"}} {
		got := dueIDs(t, st, func(ctx context.Context, s ports.Sessions) ([]string, error) {
			return s.TimeDue(ctx, storeNow.Add(at), 10)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", at, diff)
		}
	}
}

func settleDue(t *testing.T, st ports.Store) {
	addSessions(t, st, manySessions("agt_1", 3)...)
	plan := func(i int, at time.Time) {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Traffic().SetSettleAt(ctx, fmt.Sprintf("sess_agt_1_%d", i), at)
		})
	}
	due := func(at time.Time, limit int) []string {
		return dueIDs(t, st, func(ctx context.Context, s ports.Sessions) ([]string, error) { return s.SettleDue(ctx, at, limit) })
	}
	plan(0, storeNow)
	plan(1, storeNow.Add(time.Second))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for id, want := range map[string]time.Time{"sess_agt_1_0": storeNow, "sess_agt_1_2": {}} {
			if at, err := tx.Traffic().SettleAt(ctx, id); err != nil || !at.Equal(want) {
				t.Errorf("%s is settled at %v, %v, want %v", id, at, err, want)
			}
		}
		if _, err := tx.Traffic().SettleAt(ctx, "sess_none"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("an unknown session is settled: %v", err)
		}
		return nil
	})
	if got := due(storeNow.Add(-time.Microsecond), 10); len(got) != 0 {
		t.Errorf("due too early: %v", got)
	}
	if got := due(storeNow.Add(time.Second), 10); len(got) != 2 || got[0] != "sess_agt_1_0" {
		t.Errorf("due: %v", got)
	}
	if got := due(storeNow.Add(time.Second), 1); len(got) != 1 {
		t.Errorf("due, at most one: %v", got)
	}
	plan(0, time.Time{})
	if got := due(storeNow.Add(time.Hour), 10); len(got) != 1 || got[0] != "sess_agt_1_1" {
		t.Errorf("due after one was settled: %v", got)
	}
}

func creatingSince(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 4)
	for i := range 3 {
		list[i].Status = session.Creating
	}
	addSessions(t, st, list...)
	got := dueIDs(t, st, func(ctx context.Context, s ports.Sessions) ([]string, error) {
		return s.CreatingSince(ctx, list[2].CreatedAt, 10)
	})
	if diff := cmp.Diff([]string{list[0].ID, list[1].ID}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
