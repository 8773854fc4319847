package contract

import (
	"context"
	"errors"
	"fmt"
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
	{"old events are purged, a number at a time", outboxIsPurged},
	{"deliveries that failed without an attempt are purged with their events", refusedArePurged},
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
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
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
	wantEvents(t, st, "evt_2", webhookEvent(0, "agt_1"), webhookEvent(1, "agt_1"), webhookEvent(6, "agt_1"), webhookEvent(7, "agt_1"))
}

func eventsAreAppendedOnce(t *testing.T, st ports.Store) {
	appendOutbox(t, st, webhookEvent(1, "agt_1"))
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Append(ctx, webhookEvent(1, "agt_1"))
	})
	if err == nil {
		t.Error("an event was appended twice")
	}
	wantEvents(t, st, "evt_2", webhookEvent(1, "agt_1"))
}

func outboxIsPurged(t *testing.T, st ports.Store) {
	for _, n := range []int{4, 1, 3, 2, 0} {
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
