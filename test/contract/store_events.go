package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var eventClaims = []claim{
	{"a health state is read back as it was written", healthRoundTrip},
	{"health of many sessions is read at once", healthOfMany},
	{"health of the live sessions is listed, newest first", healthOfLive},
	{"the newest events of many sessions are read at once", eventNewest},
	{"events are read back as they were written", eventRoundTrip},
	{"events are paged newest first over any number of appends", eventPages},
	{"more events than fit a chunk are all kept", eventMany},
	{"events of an unknown session are refused", eventUnknown},
	{"old events are trimmed, the oldest first", eventTrim},
	{"of a session the newest events are kept", eventNewestKept},
}

func healthRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), staticSession("agt_1", "sess_2"), dynamicSession("agt_2", "sess_3"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Health().Put(ctx, "sess_1", health.State{}), tx.Health().Put(ctx, "sess_1", reportedState()))
	})
	ids := []string{"sess_1", "sess_2", "sess_3", "sess_4"}
	mine := map[string]*ports.HealthRead{
		"sess_1": {State: reportedState(), AgentID: "agt_1", Type: session.Dynamic, Status: session.Active},
		"sess_2": {AgentID: "agt_1", Type: session.Static, Status: session.Creating},
	}
	all := map[string]*ports.HealthRead{"sess_1": mine["sess_1"], "sess_2": mine["sess_2"],
		"sess_3": {AgentID: "agt_2", Type: session.Dynamic, Status: session.Active}}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Health().Get(ctx, "agt_1", ids)
		if !sameHealth(mine, got) {
			t.Errorf("the agent sees %d sessions, want its own two", len(got))
		}
		seen, allErr := tx.Health().Get(ctx, "", ids)
		if !sameHealth(all, seen) {
			t.Errorf("the service sees %d sessions, want all three", len(seen))
		}
		none, noneErr := tx.Health().Get(ctx, "agt_1", nil)
		if len(none) != 0 {
			t.Errorf("no ids give %d sessions", len(none))
		}
		return errors.Join(err, allErr, noneErr)
	})
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Health().Put(ctx, "sess_4", reportedState())
	})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Put for an unknown session: %v", err)
	}
}

func sameHealth(a, b map[string]*ports.HealthRead) bool {
	same := len(a) == len(b)
	for id := range a {
		same = same && b[id] != nil && *a[id] == *b[id]
	}
	return same
}

func healthOfMany(t *testing.T, st ports.Store) {
	sessions := manySessions("agt_1", 1000)
	addSessions(t, st, sessions...)
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.ID, s.ID)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Health().Get(ctx, "agt_1", ids)
		if len(got) != len(sessions) {
			t.Errorf("%d states, want %d", len(got), len(sessions))
		}
		return err
	})
}

// someEvents differ from each other in what they have.
func someEvents(from, n int) []eventlog.Event {
	list := make([]eventlog.Event, n)
	for i := range list {
		no := from + i
		list[i] = eventlog.Event{ID: fmt.Sprintf("evt_%020d", no), At: storeNow.Add(time.Duration(no) * time.Millisecond),
			Source: eventlog.Source(no % 3), Type: []string{"success", "block", "tunnel"}[no%3],
			TargetHost: fmt.Sprintf("host%d.example", no%5), StatusCode: 200 + no%300, LatencyMS: no%700 - 1}
		if no%4 == 0 {
			list[i].ID = fmt.Sprintf("evt_%d", no)
			list[i].OccurredAt = storeNow.Add(-time.Duration(no) * time.Hour)
		}
		if no%5 == 0 {
			list[i].Code, list[i].Bytes, list[i].ExitIP = "TARGET_REFUSED", int64(no)<<30, "192.0.2.1"
			list[i].Message, list[i].Retryable, list[i].HowToFix = "no – ünï", true, "try again"
		}
	}
	return list
}

func appendEvents(t *testing.T, st ports.Store, sessionID string, events []eventlog.Event) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Events().Append(ctx, sessionID, events) })
}

func eventPage(t *testing.T, st ports.Store, sessionID string, number, size int) (list domain.List[eventlog.Event]) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Events().Page(ctx, sessionID, domain.Page{Number: number, Size: size})
		return err
	})
	return list
}

func healthOfLive(t *testing.T, st ports.Store) {
	over := dynamicSession("agt_1", "sess_3")
	over.Status = session.Terminated
	labelled := staticSession("agt_1", "sess_2")
	labelled.Labels, over.Labels = session.Labels{"team": "prices"}, session.Labels{"team": "prices"}
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), labelled, over, dynamicSession("agt_2", "sess_4"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Workers().Insert(ctx, storedWorker("sess_1", "w_A"))
		return errors.Join(err, tx.Sessions().Put(ctx, over), tx.Health().Put(ctx, "sess_1", reportedState()),
			tx.Traffic().PutUsage(ctx, "sess_1", traffic.Delta{Up: 1, At: storeNow}))
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Health().Summaries(ctx, "agt_1", 0)
		want := []ports.SessionSummary{
			{ID: "sess_2", Type: session.Static, Status: session.Creating},
			{ID: "sess_1", Type: session.Dynamic, Status: session.Active, UsedAt: storeNow, Workers: true, Health: reportedState().Summary},
		}
		if !slices.Equal(list, want) {
			t.Errorf("live are %+v, want %+v", list, want)
		}
		all, allErr := tx.Health().Summaries(ctx, "agt_1", 1)
		ended := ports.SessionSummary{ID: "sess_3", Type: session.Dynamic, Status: session.Terminated}
		if !slices.Equal(all, append([]ports.SessionSummary{ended}, want...)) {
			t.Errorf("live ones and the last one are %+v", all)
		}
		for _, c := range []struct {
			filter ports.SessionFilter
			want   []ports.SessionSummary
		}{
			{ports.SessionFilter{}, want},
			{ports.SessionFilter{LabelKey: "team", LabelValue: "prices"}, want[:1]},
			{ports.SessionFilter{Status: session.Active}, want[1:]},
			{ports.SessionFilter{Type: session.Dynamic, LabelKey: "team", LabelValue: "prices"}, nil},
			{ports.SessionFilter{Status: session.Terminated}, nil},
			{ports.SessionFilter{Part: "ess_2"}, want[:1]},
			{ports.SessionFilter{Part: "%"}, nil},
			{ports.SessionFilter{Part: dynamicSession("agt_1", "sess_1").Exits[0].IP.String()}, want[1:]},
		} {
			live, liveErr := tx.Health().LiveSummaries(ctx, "agt_1", c.filter)
			if liveErr != nil || !slices.Equal(live, c.want) {
				t.Errorf("of %+v live are %+v, want %+v, %v", c.filter, live, c.want, liveErr)
			}
		}
		return errors.Join(err, allErr)
	})
}

func eventNewest(t *testing.T, st ports.Store) {
	addSessions(t, st, append(manySessions("agt_1", 3), dynamicSession("agt_2", "sess_other"))...)
	ids := manySessions("agt_1", 3)
	first, last := someEvents(0, 5), someEvents(20, 2)
	appendEvents(t, st, ids[0].ID, first)
	appendEvents(t, st, ids[0].ID, last)
	appendEvents(t, st, ids[1].ID, someEvents(10, 1))
	appendEvents(t, st, "sess_other", someEvents(50, 1))
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Events().Newest(ctx, []string{ids[0].ID, ids[1].ID, ids[2].ID}, 2)
		slices.Reverse(last)
		want := map[string][]eventlog.Event{ids[0].ID: last, ids[1].ID: someEvents(10, 1)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("two of each (-want +got):\n%s", diff)
		}
		more, moreErr := tx.Events().Newest(ctx, []string{ids[0].ID}, 3)
		slices.Reverse(first)
		if diff := cmp.Diff(append(last, first...), more[ids[0].ID]); diff != "" {
			t.Errorf("three of one, in whole chunks (-want +got):\n%s", diff)
		}
		none, noneErr := tx.Events().Newest(ctx, nil, 3)
		if len(none) != 0 {
			t.Errorf("of no session: %v", none)
		}
		return errors.Join(err, moreErr, noneErr)
	})
}

func eventRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	want := append(someEvents(0, 60), eventlog.Event{LatencyMS: -1})
	appendEvents(t, st, "sess_1", want)
	slices.Reverse(want)
	got := eventPage(t, st, "sess_1", 1, 100)
	if diff := cmp.Diff(want, got.Items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func eventPages(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_1", "sess_2"))
	all := someEvents(0, 50)
	for from, n := range []int{0, 1, 7, 3, 12, 1, 1, 25} {
		first := []int{0, 0, 1, 8, 11, 23, 24, 25}[from]
		appendEvents(t, st, "sess_1", all[first:first+n])
		appendEvents(t, st, "sess_2", someEvents(100+first, n))
	}
	slices.Reverse(all)
	for _, size := range []int{1, 7, 20, 50, 100} {
		var got []eventlog.Event
		for number := 1; ; number++ {
			list := eventPage(t, st, "sess_1", number, size)
			if list.Total != len(all) {
				t.Fatalf("the total is %d, want %d", list.Total, len(all))
			}
			if len(list.Items) == 0 {
				break
			}
			got = append(got, list.Items...)
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
	if list := eventPage(t, st, "sess_1", 1<<62, 100); len(list.Items) != 0 || list.Total != 50 {
		t.Errorf("far past the end: %d items of %d", len(list.Items), list.Total)
	}
}

func eventMany(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	all := someEvents(0, 2345)
	appendEvents(t, st, "sess_1", all)
	list := eventPage(t, st, "sess_1", 1, 100)
	if list.Total != len(all) || list.Items[0].ID != all[2344].ID {
		t.Errorf("%d events, the newest is %s", list.Total, list.Items[0].ID)
	}
	if last := eventPage(t, st, "sess_1", 24, 100); len(last.Items) != 45 || last.Items[44].ID != all[0].ID {
		t.Errorf("the last page has %d events", len(last.Items))
	}
}

func eventUnknown(t *testing.T, st ports.Store) {
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Events().Append(ctx, "sess_1", someEvents(0, 1))
	})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Append: %v", err)
	}
}

func eventNewestKept(t *testing.T, st ports.Store) {
	sessions := manySessions("agt_1", 2)
	addSessions(t, st, sessions...)
	all := someEvents(0, 50)
	for i := 0; i < 50; i += 10 {
		for _, s := range sessions {
			appendEvents(t, st, s.ID, all[i:i+10])
		}
	}
	keep := func(id string, atLeast int) {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Events().KeepNewest(ctx, id, atLeast) })
	}
	for _, c := range []struct{ atLeast, total int }{{100, 50}, {50, 50}, {41, 50}, {40, 40}, {15, 20}} {
		keep(sessions[0].ID, c.atLeast)
		if list := eventPage(t, st, sessions[0].ID, 1, 100); list.Total != c.total || list.Items[0].ID != all[49].ID ||
			len(list.Items) != c.total {
			t.Errorf("at least %d: %d events are left, want %d", c.atLeast, list.Total, c.total)
		}
	}
	if list := eventPage(t, st, sessions[1].ID, 1, 5); list.Total != 50 {
		t.Errorf("of the other session %d events are left", list.Total)
	}
	appendEvents(t, st, sessions[0].ID, all[:10])
	if list := eventPage(t, st, sessions[0].ID, 1, 5); list.Total != 30 || list.Items[0].ID != all[9].ID {
		t.Errorf("after the next call of Append there are %d events", list.Total)
	}
}

func eventTrim(t *testing.T, st ports.Store) {
	sessions := manySessions("agt_1", 5)
	addSessions(t, st, sessions...)
	all := someEvents(0, 30)
	for i := 0; i < 30; i += 10 {
		for _, s := range sessions {
			appendEvents(t, st, s.ID, all[i:i+10])
		}
	}
	before := all[20].At
	for _, want := range []int{3, 3, 3, 1, 0} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Events().Trim(ctx, before, 3)
			if got != want {
				t.Errorf("removed %d, want %d", got, want)
			}
			return err
		})
	}
	want := slices.Clone(all[20:])
	slices.Reverse(want)
	for _, s := range sessions {
		list := eventPage(t, st, s.ID, 1, 100)
		if diff := cmp.Diff(want, list.Items); diff != "" || list.Total != 10 {
			t.Errorf("%s: total %d (-want +got):\n%s", s.ID, list.Total, diff)
		}
	}
	appendEvents(t, st, sessions[0].ID, all[:1])
	if list := eventPage(t, st, sessions[0].ID, 1, 5); list.Total != 11 || list.Items[0].ID != all[0].ID {
		t.Errorf("after the next append there are %d events", list.Total)
	}
}
