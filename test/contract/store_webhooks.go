package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

var webhookClaims = []claim{
	{"an endpoint has the account's URL and version and a state of its own", endpointsAreKept},
	{"a delivery is read as it was written, by its owner and by the service", deliveriesAreKept},
	{"an event has one delivery", eventsAreDeliveredOnce},
	{"deliveries are listed newest first, by status, page by page", deliveriesAreListed},
	{"what is overdue is listed, the longest first", overdueIsListed},
	{"a mark returns once that it changed", marksAreSetOnce},
	{"sessions that end soon are listed", expiringIsListed},
	{"trials that end soon are listed", trialsAreListed},
}

func delivery(n int, agentID string) webhook.Delivery {
	d := webhook.NewDelivery(fmt.Sprintf("dlv_%d", n), webhookEvent(n, agentID), storeNow.Add(time.Duration(n)*time.Second))
	d.Attempts, d.Tries, d.LastStatusCode, d.LastError = n+2, n+1, 500+n, "the endpoint answered"
	return d
}

func putDeliveries(t testing.TB, st ports.Store, list ...webhook.Delivery) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, d := range list {
			if err := tx.Webhooks().InsertDelivery(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
}

func wantDeliveries(t testing.TB, st ports.Store, agentID string, of webhook.Status, page domain.Page, total int, want ...webhook.Delivery) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Webhooks().Deliveries(ctx, agentID, of, page)
		sameList(t, fmt.Sprint(agentID, of, page), want, got.Items, err)
		if got.Total != total || got.Page != page {
			t.Errorf("%s: total %d, want %d; page %v", agentID, got.Total, total, got.Page)
		}
		return nil
	})
}

func endpointsAreKept(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 0)
	want := webhook.Endpoint{AgentID: "agt_1", URL: "https://example.com/hook", Version: 2}
	check := func(want webhook.Endpoint) {
		t.Helper()
		for name, unit := range map[string]func(context.Context, unit) error{"view": bare(st.View), "look": st.Read, "update": bare(st.Update)} {
			err := unit(t.Context(), func(ctx context.Context, tx ports.Tx) error {
				read := tx.Webhooks().Endpoint
				if name == "update" {
					peeked, err := tx.Webhooks().PeekEndpoint(ctx, want.AgentID)
					if peeked != want || err != nil {
						t.Errorf("peeked %+v, %v", peeked, err)
					}
				}
				got, err := read(ctx, want.AgentID)
				if got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	check(want)
	for i := range 2 {
		want.RotatedAt, want.DisabledAt = storeNow, storeNow.Add(time.Second)
		want.FailingSince, want.LastDeliveryAt = storeNow.Add(2*time.Second), storeNow.Add(time.Duration(3+i)*time.Second)
		if i == 1 {
			want.DisabledAt, want.FailingSince = time.Time{}, time.Time{}
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			e := want
			e.URL, e.Version = "https://other.example/", 9 // the account's alone
			return tx.Webhooks().PutEndpoint(ctx, e)
		})
		check(want)
	}
	check(webhook.Endpoint{AgentID: "agt_2", URL: "https://example.com/hook", Version: 2})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Webhooks().Endpoint(ctx, "agt_3"); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("an unknown agent: %v", err)
		}
		return nil
	})
}

func deliveriesAreKept(t *testing.T, st ports.Store) {
	d := delivery(1, "agt_1")
	putDeliveries(t, st, d, delivery(2, "agt_1"))
	check := func() {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			mine, err := tx.Webhooks().Delivery(ctx, "agt_1", d.ID)
			if mine != d || err != nil {
				t.Errorf("read %+v, %v, want %+v", mine, err, d)
			}
			if loaded, err := tx.Webhooks().LoadDelivery(ctx, d.ID); loaded != d || err != nil {
				t.Errorf("loaded %+v, %v, want %+v", loaded, err, d)
			}
			_, err = tx.Webhooks().Delivery(ctx, "agt_2", d.ID)
			_, none := tx.Webhooks().LoadDelivery(ctx, "dlv_9")
			if !errors.Is(err, webhook.ErrNotFound) || !errors.Is(none, webhook.ErrNotFound) {
				t.Errorf("another agent's: %v; none: %v", err, none)
			}
			return nil
		})
	}
	check()
	d.Status, d.Attempts, d.Tries, d.LastStatusCode, d.LastError, d.NextAttemptAt = webhook.Delivered, 9, 8, 204, "", time.Time{}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		changed := d
		changed.AgentID, changed.EventID, changed.CreatedAt = "agt_9", "evt_9", storeNow.Add(time.Hour)
		return tx.Webhooks().PutDelivery(ctx, changed)
	})
	check()
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Webhooks().PutDelivery(ctx, delivery(7, "agt_1"))
	})
	if !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("writing an unknown one: %v", err)
	}
}

func eventsAreDeliveredOnce(t *testing.T, st ports.Store) {
	d := delivery(1, "agt_1")
	putDeliveries(t, st, d)
	d.ID = "dlv_other"
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return tx.Webhooks().InsertDelivery(ctx, d) })
	if !errors.Is(err, ports.ErrDuplicate) {
		t.Errorf("a second delivery: %v", err)
	}
}

func deliveriesAreListed(t *testing.T, st ports.Store) {
	d := []webhook.Delivery{delivery(5, "agt_1"), delivery(1, "agt_2"), delivery(2, "agt_1"), delivery(3, "agt_1")}
	d[2].Status, d[2].NextAttemptAt = webhook.Failed, time.Time{}
	putDeliveries(t, st, d...)
	wantDeliveries(t, st, "agt_1", "", domain.Page{Number: 1, Size: 2}, 3, d[3], d[2])
	wantDeliveries(t, st, "agt_1", "", domain.Page{Number: 2, Size: 2}, 3, d[0])
	wantDeliveries(t, st, "agt_1", "", domain.Page{Number: 1 << 62, Size: 100}, 3)
	wantDeliveries(t, st, "agt_1", webhook.Pending, domain.Page{Number: 1, Size: 20}, 2, d[3], d[0])
	wantDeliveries(t, st, "agt_1", webhook.Pending, domain.Page{Number: 2, Size: 1}, 2, d[0])
	wantDeliveries(t, st, "agt_1", webhook.Failed, domain.Page{Number: 1, Size: 20}, 1, d[2])
	wantDeliveries(t, st, "agt_2", webhook.Delivered, domain.Page{Number: 1, Size: 20}, 0)
}

func overdueIsListed(t *testing.T, st ports.Store) {
	d := []webhook.Delivery{delivery(3, "agt_1"), delivery(1, "agt_2"), delivery(2, "agt_1"), delivery(4, "agt_1")}
	d[2].Status, d[2].NextAttemptAt = webhook.Failed, time.Time{}
	putDeliveries(t, st, d...)
	for _, c := range []struct {
		before time.Duration
		limit  int
		want   []webhook.Delivery
	}{
		{time.Second, 10, nil}, {time.Second + time.Microsecond, 10, d[1:2]}, {time.Minute, 2, []webhook.Delivery{d[1], d[0]}},
		{time.Minute, 10, []webhook.Delivery{d[1], d[0], d[3]}},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Webhooks().Overdue(ctx, storeNow.Add(c.before), c.limit)
			sameList(t, fmt.Sprint(c.before, c.limit), c.want, got, err)
			return nil
		})
	}
}

func marksAreSetOnce(t *testing.T, st ports.Store) {
	for _, c := range []struct {
		agent, what string
		to          int64
		changed     bool
	}{
		{"agt_1", "low", 5, true}, {"agt_1", "low", 5, false}, {"agt_1", "high", 5, true}, {"agt_2", "low", 5, true},
		{"", "low", 1 << 60, true}, {"agt_1", "low", 4, true}, {"agt_1", "low", 4, false},
	} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			changed, err := tx.Webhooks().MarkNotified(ctx, c.agent, c.what, c.to)
			if changed != c.changed {
				t.Errorf("%+v: changed %t", c, changed)
			}
			if mark, err := tx.Webhooks().NotifiedUpTo(ctx, c.agent, c.what); mark != c.to || err != nil {
				t.Errorf("%+v: marked %d, %v", c, mark, err)
			}
			return err
		})
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		mark, err := tx.Webhooks().NotifiedUpTo(ctx, "agt_9", "low")
		if mark != 0 {
			t.Errorf("a mark that was never set is %d", mark)
		}
		return err
	})
}

// addQuiet makes an agent without a webhook.
func addQuiet(t testing.TB, st ports.Store, id string) {
	t.Helper()
	addAgent(t, st, id, 0)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		a, err := tx.Agents().Get(ctx, id)
		if err != nil {
			return err
		}
		a.WebhookURL = ""
		return tx.Agents().Put(ctx, a)
	})
}

func expiringIsListed(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addQuiet(t, st, "agt_2")
	var list []session.Session
	for i, agent := range []string{"agt_1", "agt_1", "agt_1", "agt_2", "agt_1", "agt_1"} {
		s := staticSession(agent, fmt.Sprintf("sess_%d", i))
		s.Status, s.ActivatedAt, s.ExpiresAt = session.Active, storeNow, storeNow.Add(time.Duration(10-i)*time.Hour)
		list = append(list, s)
	}
	list[4].Status, list[4].Reason, list[4].EndedAt = session.Terminated, session.AgentRequest, storeNow
	list = append(list, dynamicSession("agt_1", "sess_9"))
	addSessions(t, st, list...)
	for _, c := range []struct {
		from, to, limit int
		want            []session.Session
	}{
		{0, 24, 10, []session.Session{list[5], list[3], list[2], list[1], list[0]}},
		{0, 24, 2, []session.Session{list[5], list[3]}}, {8, 9, 10, list[1:2]}, {10, 24, 10, nil}, {0, 4, 10, nil},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			at := func(hours int) time.Time { return storeNow.Add(time.Duration(hours) * time.Hour) }
			got, err := tx.Sessions().Expiring(ctx, at(c.from), at(c.to), c.limit)
			var want, ids []string
			for _, s := range c.want {
				want = append(want, s.ID+s.ExpiresAt.String()+s.AgentID)
			}
			for _, s := range got {
				ids = append(ids, s.ID+s.ExpiresAt.String()+s.AgentID)
			}
			sameList(t, fmt.Sprint(c.from, c.to, c.limit), want, ids, err)
			return nil
		})
	}
}

func trialsAreListed(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addQuiet(t, st, "agt_2")
	addAgent(t, st, "agt_3", domain.Dollar) // funded: no trial
	addAgent(t, st, "agt_4", 0)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Ledger().ExpireTrial(ctx, "agt_4") })
	for _, c := range []struct {
		from, to time.Duration
		want     []string
	}{
		{0, time.Hour, []string{"agt_1", "agt_2"}}, {0, time.Hour - 1000, nil}, {time.Hour, 2 * time.Hour, nil},
		{time.Hour - 1000, 2 * time.Hour, []string{"agt_1", "agt_2"}},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Ledger().TrialsEnding(ctx, storeNow.Add(c.from), storeNow.Add(c.to), 10)
			ids := make([]string, 0, 1)
			for _, w := range got {
				ids = append(ids, w.AgentID)
				if w.TrialExpiresAt != storeNow.Add(time.Hour) || w.Balance() != 0 || w.Held != (billing.Funds{}) {
					t.Errorf("the wallet is %+v", w)
				}
			}
			slices.Sort(ids)
			sameList(t, fmt.Sprint(c.from, c.to), c.want, ids, err)
			return nil
		})
	}
}
