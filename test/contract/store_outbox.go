package contract

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

var outboxClaims = []claim{
	{"events are read back as they were appended", outboxRoundTrip},
	{"an event is appended with its unit or not at all", outboxFollowsItsUnit},
	{"an event is appended once", eventsAreAppendedOnce},
	{"an event that no webhook is sent is in the feed alone", unsentEventsAreInTheFeed},
	{"old events are purged, a number at a time", outboxIsPurged},
	{"deliveries that failed without an attempt are purged, and their events stay", refusedArePurged},
	{"a feed has the events of one agent behind a place", feedOfOne},
	{"an event is never put in front of one that was listed", feedInOrderOfCommits},
	{"with an event its delivery is purged", deliveriesArePurged},
}

func webhookEvent(n int, agentID string) webhook.Event {
	return webhook.Event{ID: fmt.Sprintf("evt_%d", n), AgentID: agentID, Type: webhook.RechargePaid,
		At:   storeNow.Add(time.Duration(n) * time.Minute),
		Data: map[string]string{"order_id": fmt.Sprintf("PAY%d", n), "text": "<\"é\u2028'\\ &>", "": ""}}
}

func appendOutbox(t testing.TB, st ports.Store, list ...webhook.Event) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, e := range list {
			if err := tx.Outbox().Append(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// wantEvents reads events by their ids, and demands that an absent one is not found.
func wantEvents(t testing.TB, st ports.Store, absent string, want ...webhook.Event) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, e := range want {
			got, err := tx.Outbox().Event(ctx, e.ID)
			sameList(t, e.ID, []webhook.Event{e}, []webhook.Event{got}, err)
		}
		if _, err := tx.Outbox().Event(ctx, absent); !errors.Is(err, webhook.ErrNotFound) {
			t.Errorf("%s: %v", absent, err)
		}
		return nil
	})
}

func outboxRoundTrip(t *testing.T, st ports.Store) {
	e := []webhook.Event{webhookEvent(9, "agt_1"), webhookEvent(1, "agt_2"), webhookEvent(2, "agt_1"), webhookEvent(3, "agt_1")}
	e[2].Data = nil
	e[3].Data, e[3].Type = map[string]string{}, webhook.RechargeFailed
	appendOutbox(t, st, e...)
	wantEvents(t, st, "evt_4", e...)
}

func outboxFollowsItsUnit(t *testing.T, st ports.Store) {
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Outbox().Append(ctx, webhookEvent(1, "agt_1")), errUnit)
	})
	if !errors.Is(err, errUnit) {
		t.Fatal(err)
	}
	wantEvents(t, st, "evt_1")
}

func deliveriesArePurged(t *testing.T, st ports.Store) {
	for n := range 4 {
		appendOutbox(t, st, webhookEvent(n, "agt_1"))
		putDeliveries(t, st, delivery(n, "agt_1"))
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Outbox().Purge(ctx, storeNow.Add(3*time.Minute), 2)
		if n != 2 {
			t.Errorf("%d events were removed", n)
		}
		return err
	})
	wantDeliveries(t, st, "agt_1", "", domain.Page{Number: 1, Size: 20}, 2, delivery(3, "agt_1"), delivery(2, "agt_1"))
}

func refusedArePurged(t *testing.T, st ports.Store) {
	var kept []webhook.Delivery
	for n := range 8 {
		appendOutbox(t, st, webhookEvent(n, "agt_1"))
		d := delivery(n, "agt_1")
		d.Status, d.Attempts, d.NextAttemptAt = webhook.Failed, 0, time.Time{}
		switch n {
		case 0:
			d.Attempts = 1
		case 1:
			d.Status, d.NextAttemptAt = webhook.Pending, d.CreatedAt
		}
		putDeliveries(t, st, d)
		if n < 2 || n > 5 {
			kept = append([]webhook.Delivery{d}, kept...)
		}
	}
	for _, c := range []struct{ limit, removed int }{{3, 3}, {3, 1}, {3, 0}} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			n, err := tx.Outbox().PurgeRefused(ctx, storeNow.Add(6*time.Second), c.limit)
			if n != c.removed {
				t.Errorf("%d of %d were removed", n, c.removed)
			}
			return err
		})
	}
	wantDeliveries(t, st, "agt_1", "", domain.Page{Number: 1, Size: 20}, 4, kept...)
	wantEvents(t, st, "evt_8", webhookEvent(0, "agt_1"), webhookEvent(2, "agt_1"), webhookEvent(7, "agt_1"))
}

func eventsAreAppendedOnce(t *testing.T, st ports.Store) {
	appendOutbox(t, st, webhookEvent(1, "agt_1"))
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Append(ctx, webhookEvent(1, "agt_1"))
	})
	if err == nil {
		t.Error("an event was appended twice")
	}
	wantEvents(t, st, "evt_2", webhookEvent(1, "agt_1"))
}

func outboxIsPurged(t *testing.T, st ports.Store) {
	for _, n := range []int{0, 1, 3, 2, 4} { // about in the order of their times
		appendOutbox(t, st, webhookEvent(n, fmt.Sprintf("agt_%d", n)))
	}
	for _, c := range []struct{ before, limit, removed, left int }{
		{0, 10, 0, 5}, {3, 2, 2, 3}, {3, 2, 1, 2}, {3, 2, 0, 2}, {4, 10, 1, 1},
	} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			n, err := tx.Outbox().Purge(ctx, storeNow.Add(time.Duration(c.before)*time.Minute), c.limit)
			if n != c.removed || err != nil {
				t.Errorf("%+v: %d were removed, %v", c, n, err)
			}
			left := 0
			for n := range 5 {
				_, err := tx.Outbox().Event(ctx, fmt.Sprintf("evt_%d", n))
				switch {
				case err == nil:
					left++
				case !errors.Is(err, webhook.ErrNotFound):
					return err
				case n >= c.before:
					t.Errorf("%+v: event %d is gone", c, n)
				}
			}
			if left != c.left {
				t.Errorf("%+v: %d are left", c, left)
			}
			return nil
		})
	}
}

// readFeed reads a page of agt_1's feed, once all that is committed is in it: of one PostgreSQL server the transactions
// of other databases count too.
func readFeed(t testing.TB, st ports.Store, after int64, limit int, types ...webhook.Type) (page ports.FeedPage) {
	t.Helper()
	for page.Later = true; page.Later; runtime.Gosched() {
		page = pollFeed(t, st, after, limit, types...)
	}
	return page
}

func pollFeed(t testing.TB, st ports.Store, after int64, limit int, types ...webhook.Type) (page ports.FeedPage) {
	t.Helper()
	if types == nil {
		types = webhook.Types
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		page, err = tx.Outbox().Feed(ctx, ports.FeedQuery{AgentID: "agt_1", After: after, Types: types, Limit: limit})
		return err
	})
	return page
}

func feedOfOne(t *testing.T, st ports.Store) {
	if page := readFeed(t, st, 0, 3); len(page.Events) != 0 || page.Later {
		t.Errorf("the feed begins with %+v", page)
	}
	var want []webhook.Event
	for n, agent := range []string{"agt_1", "agt_2", "agt_1", "agt_1", "agt_1"} {
		e := webhookEvent(n, agent)
		if n == 3 {
			e.Type, e.Data = webhook.SessionActive, map[string]string{"session_id": "sess_1"}
		}
		appendOutbox(t, st, e)
		if agent == "agt_1" {
			want = append(want, e)
		}
	}
	page := readFeed(t, st, 0, 3)
	sameList(t, "the first page", want[:3], page.Events, nil)
	rest := readFeed(t, st, page.Next, 3)
	sameList(t, "the second page", want[3:], rest.Events, nil)
	if end := readFeed(t, st, rest.Next, 3); len(end.Events) != 0 || end.Next < rest.Next {
		t.Errorf("behind the end: %+v, and the end is %d", end, rest.Next)
	}
	one := readFeed(t, st, 0, 3, webhook.SessionActive, webhook.BalanceLow)
	sameList(t, "of two types", want[2:3], one.Events, nil)
	if one.Next < rest.Next {
		t.Errorf("all was looked at up to %d, and the next place is %d", rest.Next, one.Next)
	}
	appendOutbox(t, st, webhookEvent(9, "agt_1"))
	sameList(t, "a later one", []webhook.Event{webhookEvent(9, "agt_1")}, readFeed(t, st, rest.Next, 3).Events, nil)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Outbox().Feed(ctx, ports.FeedQuery{AgentID: "agt_1", After: 1 << 62, Types: webhook.Types, Limit: 1})
		if !errors.Is(err, ports.ErrMissed) {
			t.Errorf("a place that was never reached: %v", err)
		}
		return nil
	})
}

// Units that run at once commit in another order than they began in. A reader that goes on where it was sees all.
func feedInOrderOfCommits(t *testing.T, st ports.Store) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
					err := tx.Outbox().Append(ctx, webhookEvent(w*each+n, "agt_1"))
					if w%2 == 0 { // written before the end of the unit, which others overtake
						_, errs := tx.Outbox().Event(ctx, "evt_none")
						if !errors.Is(errs, webhook.ErrNotFound) {
							return errs
						}
						runtime.Gosched()
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := map[string]int{}
	var after int64
	for ended := false; len(seen) < writers*each || !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		page := pollFeed(t, st, after, 7)
		for _, e := range page.Events {
			seen[e.ID]++
		}
		if ended && len(page.Events) == 0 && !page.Later {
			break
		}
		after = page.Next
	}
	for w := range writers * each {
		if n := seen[fmt.Sprintf("evt_%d", w)]; n != 1 {
			t.Errorf("event %d was listed %d times", w, n)
		}
	}
}

func unsentEventsAreInTheFeed(t *testing.T, st ports.Store) {
	unsent := webhookEvent(1, "agt_1")
	unsent.Unsent = true
	appendOutbox(t, st, unsent, webhookEvent(2, "agt_1"))
	wantEvents(t, st, "evt_1", webhookEvent(2, "agt_1"))
	if page := readFeed(t, st, 0, 9); len(page.Events) != 2 || page.Events[0].ID != "evt_1" {
		t.Errorf("the feed has %+v", page.Events)
	}
}
