package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/sqlitetest"
)

// feedOf reads the whole feed of an agent, some events at a time.
func feedOf(t *testing.T, st ports.Store, agent string, limit int) (ids []string) {
	t.Helper()
	var after int64
	for {
		var page ports.FeedPage
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			page, err = tx.Outbox().Feed(ctx, ports.FeedQuery{AgentID: agent, After: after, Types: webhook.Types, Limit: limit})
			return err
		})
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if after = page.Next; len(page.Events) < limit {
			return ids
		}
	}
}

// unlisted counts the events that outbox_feeds lacks, and the rows that it has of none.
func unlisted(t *testing.T, st *storage.Store) (lacks, without int) {
	t.Helper()
	err := st.Writer().QueryRow(`SELECT
		(SELECT COUNT(*) FROM outbox o WHERE agent_id <> '' AND NOT EXISTS
			(SELECT 1 FROM outbox_feeds f WHERE f.agent_id = o.agent_id AND f.seq = o.seq)),
		(SELECT COUNT(*) FROM outbox_feeds f WHERE agent_id <> '' AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.seq = f.seq))`).
		Scan(&lacks, &without)
	if err != nil {
		t.Fatal(err)
	}
	return lacks, without
}

// On SQLite events are listed by their agents some hundred at a time. Feeds have all of them, once and in their order,
// listed or not, over restarts, refused units, purges, and what an older program added, which lists none.
func TestFeedsHaveEventsThatAreNotListedYet(t *testing.T) {
	t.Parallel()
	path := sqlitetest.File(t)
	st := openAt(t, path)
	want := map[string][]string{}
	n := 0
	add := func(agents, times int) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			for range times {
				for a := range agents {
					agent, id := fmt.Sprint("agt_", a), fmt.Sprint("evt_", n)
					n++
					want[agent] = append(want[agent], id)
					if err := appendFor(ctx, tx, agent, id); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	check := func(what string) {
		t.Helper()
		for agent, ids := range want {
			for _, limit := range []int{7, 100} {
				if got := feedOf(t, st, agent, limit); !slices.Equal(got, ids) {
					t.Errorf("%s, %d at a time: %s has %d events, want %d", what, limit, agent, len(got), len(ids))
				}
			}
		}
	}
	add(3, 1)
	check("none listed")
	if lacks, _ := unlisted(t, st); lacks != 3 {
		t.Errorf("of 3 events %d are not listed", lacks)
	}
	for range 20 {
		add(5, 17)
	}
	check("most listed")
	if lacks, _ := unlisted(t, st); lacks >= 512 {
		t.Errorf("%d events are not listed", lacks)
	}
	refused := errors.New("refused")
	for range 3 {
		err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(appendFor(ctx, tx, "agt_1", "evt_refused"), refused)
		})
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openAt(t, path)
	check("after a restart")
	var rows []string
	for range 1500 {
		id := fmt.Sprint("evt_", n)
		n++
		want["agt_1"] = append(want["agt_1"], id)
		rows = append(rows, fmt.Sprintf("('%s', 'agt_1', 'balance.low', 1, '{}')", id))
	}
	execAll(t, st, "INSERT INTO outbox (id, agent_id, type, at, data) VALUES "+strings.Join(rows, ", "))
	check("by an older program")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openAt(t, path)
	add(5, 1)
	add(5, 1)
	check("by both")
	if lacks, _ := unlisted(t, st); lacks >= 512 {
		t.Errorf("%d events are not listed behind an older program's", lacks)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Outbox().Purge(ctx, now.Add(time.Hour), 1000)
		return err
	})
	for agent, ids := range want {
		want[agent] = slices.DeleteFunc(ids, func(id string) bool {
			var i int
			_, err := fmt.Sscanf(id, "evt_%d", &i)
			return err == nil && i < 1000
		})
	}
	check("after a purge")
	if _, without := unlisted(t, st); without != 0 {
		t.Errorf("%d that were purged are listed", without)
	}
}

// Events of a file are read by the list of their agents, and those behind it by their numbers.
func TestFeedsReadNoEventsOfOthers(t *testing.T) {
	t.Parallel()
	plans, err := openStore(t).Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Outbox().Feed(ctx, ports.FeedQuery{AgentID: "agt_1", Types: webhook.Types, Limit: 9})
		return err
	})
	all := strings.Join(plans, "\n")
	if err != nil || !strings.Contains(all, "SEARCH f USING PRIMARY KEY (agent_id=? AND seq>? AND seq<?)") ||
		strings.Contains(all, "SCAN outbox") || strings.Contains(all, "TEMP B-TREE") {
		t.Errorf("%v\n%s", err, all)
	}
}

// Units that share a commit have their events in their order, without those of a unit that was refused, whether it wrote
// something else before or not. A commit that cannot insert them runs each unit alone.
func TestEventsOfUnitsThatShareACommit(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	refused := errors.New("refused")
	appendSent := func(id string, end error) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(appendFor(ctx, tx, "agt_1", id), end)
		}
	}
	run := func(units ...func(context.Context, ports.Tx) error) (failed []int) {
		t.Helper()
		g := closeGate(t, st)
		errs := make([]error, len(units))
		for i, unit := range units {
			g.queue(func() { errs[i] = st.Update(context.Background(), ports.ReadSet{}, unit) })
		}
		g.pass()
		for i, err := range errs {
			if err != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	wrote := func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(appendFor(ctx, tx, "agt_1", "evt_wrote"), count("x", func() error { return refused })(ctx, tx))
	}
	failed := run(appendSent("evt_1", nil), appendSent("evt_refused", refused), appendSent("evt_2", nil), wrote, appendSent("evt_3", nil))
	if want := []string{"evt_1", "evt_2", "evt_3"}; !slices.Equal(feedOf(t, st, "agt_1", 9), want) || !slices.Equal(failed, []int{1, 3}) {
		t.Errorf("the feed has %q, refused are %d", feedOf(t, st, "agt_1", 9), failed)
	}
	failed = run(appendSent("evt_4", nil), appendSent("evt_2", nil), appendSent("evt_5", nil))
	if want := []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5"}; !slices.Equal(feedOf(t, st, "agt_1", 9), want) ||
		!slices.Equal(failed, []int{1}) {
		t.Errorf("after one that was there the feed has %q, refused are %d", feedOf(t, st, "agt_1", 9), failed)
	}
}

// Who appends events may keep its list, as the observer of the gateway does until its unit has ended.
func TestNothingIsWrittenBehindAListOfEvents(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", 100)
		list := append(make([]eventlog.Event, 0, 2), eventlog.Event{ID: "evt_1", At: now, Type: "success"})
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(tx.Sessions().Insert(ctx, dynamicSession("agt_1", "sess_1")), tx.Events().Append(ctx, "sess_1", list),
				tx.Events().Append(ctx, "sess_1", []eventlog.Event{{ID: "evt_2", At: now, Type: "success"}}))
		})
		if behind := list[:2][1].ID; behind != "" {
			t.Errorf("%s was written behind the list", behind)
		}
	})
}
