package contract

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// chargeFor charges what a session holds.
func chargeFor(t *testing.T, st ports.Store, sessionID string, x domain.Money) {
	t.Helper()
	mustPost(t, st, ports.Posting{Entry: billing.Entry{ID: "txn_charge" + sessionID, AgentID: "agt_1", Type: billing.ChargeEntry,
		Held: billing.Funds{Own: -x}, Account: billing.Revenue, Counter: x, Ref: "charge:" + sessionID, SessionID: sessionID,
		At: storeNow}})
}

// partsOfKeys has three keys buy, one of them of another agent under the same id.
func partsOfKeys(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	addAgent(t, st, "agt_2", 100)
	buyByKey(t, st, "agt_1", "sess_1", "key_a", 7)
	buyByKey(t, st, "agt_1", "sess_2", "key_b", 5)
	buyByKey(t, st, "agt_1", "sess_3", "key_a", 3)
	buyByKey(t, st, "agt_2", "sess_4", "key_a", 2)
	chargeFor(t, st, "sess_1", 4)
	chargeFor(t, st, "sess_2", 1)
	hour := storeNow.Truncate(time.Hour)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(
			tx.Traffic().Record(ctx, "agt_1", "sess_1", hour, ports.Totals{Up: 1, Down: 10, Connections: 1}),
			tx.Traffic().Record(ctx, "agt_1", "sess_2", hour, ports.Totals{Up: 2, Down: 20, Connections: 1}),
			tx.Traffic().Record(ctx, "agt_1", "sess_3", hour, ports.Totals{Up: 4, Down: 40, Connections: 1}))
	})
	first := time.Date(storeNow.Year(), storeNow.Month(), 1, 0, 0, 0, 0, time.UTC)
	next := first.AddDate(0, 1, 0)
	page := domain.Page{Number: 1, Size: 10}
	same := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		of, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{Key: "key_a"}, page)
		var sessions []string
		for _, e := range of.Items {
			sessions = append(sessions, e.SessionID)
		}
		same("entries", []string{"sess_1", "sess_3", "sess_1"}, sessions)
		none, err1 := tx.Statements().Entries(ctx, "agt_2", ports.LedgerFilter{Key: "key_b"}, page)
		same("entries of another agent's key", 0, none.Total+len(none.Items))
		sums, err2 := tx.Statements().EntriesByKey(ctx, "agt_1", ports.LedgerFilter{})
		same("entries by key", []ports.KeyEntries{{Key: "", Entries: 1, Amount: 100},
			{Key: "key_a", Entries: 3, Amount: -10, Charged: 4}, {Key: "key_b", Entries: 2, Amount: -5, Charged: 1}}, sums)
		sums, err3 := tx.Statements().EntriesByKey(ctx, "agt_1", ports.LedgerFilter{Key: "key_b", Type: billing.ChargeEntry,
			From: storeNow, To: storeNow.Add(time.Second)})
		same("charges of a key", []ports.KeyEntries{{Key: "key_b", Entries: 1, Charged: 1}}, sums)
		hours, err4 := tx.Statements().KeyHours(ctx, "agt_1", "key_a", hour, hour.Add(time.Hour))
		same("hours", []ports.Hour{{Start: hour, Totals: ports.Totals{Up: 5, Down: 50, Connections: 2, Charged: 4}}}, hours)
		n, err5 := tx.Sessions().KeyCount(ctx, "agt_1", "key_a")
		same("sessions", ports.SessionCount{Active: 2, Total: 2}, n.SessionCount)
		counts, err9 := tx.Sessions().ListByKey(ctx, "agt_1", ports.SessionFilter{})
		same("sessions by key", []ports.KeySessions{{Key: "key_a", Total: 2, Live: 2}, {Key: "key_b", Total: 1, Live: 1}}, counts)
		counts, err10 := tx.Sessions().ListByKey(ctx, "agt_1", ports.SessionFilter{Key: "key_b", Status: session.Active})
		same("sessions of a key", []ports.KeySessions{{Key: "key_b", Total: 1, Live: 1}}, counts)
		counts, err11 := tx.Sessions().ListByKey(ctx, "agt_1", ports.SessionFilter{Status: session.Terminated})
		same("sessions that ended", 0, len(counts))
		parts, err6 := tx.Statements().StatementByKey(ctx, "agt_1", "", first, next)
		same("parts", []ports.KeySums{{Key: "key_a", Held: 10, Charged: 4, Amount: -10}, {Key: "key_b", Held: 5, Charged: 1, Amount: -5}},
			parts)
		parts, err7 := tx.Statements().StatementByKey(ctx, "agt_1", "key_b", next, next.AddDate(0, 1, 0))
		same("what was before", []ports.KeySums{{Key: "key_b", Opening: -5, Before: 1}}, parts)
		items, err8 := tx.Statements().KeyItems(ctx, "agt_1", "key_a", first, next, page)
		var ids []string
		for _, i := range items.Items {
			ids = append(ids, i.SessionID)
		}
		same("items", []string{"sess_3", "sess_1"}, ids)
		same("number of items", 2, items.Total)
		return errors.Join(err, err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11)
	})
}

// feedOfAKey has events of sessions that two keys bought, and one of the account.
func feedOfAKey(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	buyByKey(t, st, "agt_1", "sess_1", "key_a", 7)
	buyByKey(t, st, "agt_1", "sess_2", "key_b", 5)
	var want []webhook.Event
	for n, id := range []string{"sess_1", "", "sess_2", "sess_1"} {
		e := webhookEvent(n, "agt_1")
		if id != "" {
			e.Type, e.Data = webhook.SessionActive, map[string]string{"session_id": id}
		}
		if appendOutbox(t, st, e); id == "sess_1" {
			want = append(want, e)
		}
	}
	q := ports.FeedQuery{AgentID: "agt_1", Key: "key_a", Types: webhook.Types, Limit: 5}
	var page ports.FeedPage
	for page.Later = true; page.Later; runtime.Gosched() {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			page, err = tx.Outbox().Feed(ctx, q)
			return err
		})
	}
	sameList(t, "of a key", want, page.Events, nil)
	if all := readFeed(t, st, 0, 9); len(all.Events) != 4 || all.Next < page.Next {
		t.Errorf("of all %d events up to %d, of a key up to %d", len(all.Events), all.Next, page.Next)
	}
}
