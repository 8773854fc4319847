package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

func trialsDue(t *testing.T, st ports.Store) {
	for _, id := range []string{"agt_1", "agt_2", "agt_3"} {
		addAgent(t, st, id, 0) // their trials end in an hour
	}
	end := storeNow.Add(time.Hour)
	due := func(now time.Time, limit int) (ids []string) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			ids, err = tx.Ledger().TrialsDue(ctx, now, limit)
			return err
		})
		return ids
	}
	if got := due(end.Add(-time.Microsecond), 10); len(got) != 0 {
		t.Errorf("due before the end: %v", got)
	}
	if got := due(end, 2); len(got) != 2 {
		t.Errorf("due at the end, at most two: %v", got)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Ledger().ExpireTrial(ctx, "agt_1"), tx.Ledger().ExpireTrial(ctx, "agt_3"))
	})
	if diff := cmp.Diff([]string{"agt_2"}, due(end.Add(time.Hour), 10)); diff != "" {
		t.Errorf("due after two were marked (-want +got):\n%s", diff)
	}
	if !wallet(t, st, "agt_1").TrialExpired {
		t.Error("the wallet does not show that its trial is over")
	}
}

func entryLists(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 5)
	var all, holds []string
	for i := range 7 {
		p := fund("agt_1", fmt.Sprint("ref:", i), 10)
		if i%3 == 1 {
			p = hold("agt_1", fmt.Sprint("ref:", i), 0, 1)
			holds = append([]string{p.Entry.Ref}, holds...)
		}
		all = append([]string{p.Entry.Ref}, all...)
		mustPost(t, st, p)
	}
	for _, c := range []struct {
		filter billing.Type
		page   domain.Page
		want   []string
		total  int
	}{
		{"", domain.Page{Number: 1, Size: 3}, all[:3], 7},
		{"", domain.Page{Number: 3, Size: 3}, all[6:], 7},
		{"", domain.Page{Number: 4, Size: 3}, nil, 7},
		{"", domain.Page{Number: 1 << 62, Size: 100}, nil, 7},
		{billing.HoldEntry, domain.Page{Number: 1, Size: 1}, holds[:1], 2},
		{billing.HoldEntry, domain.Page{Number: 2, Size: 1}, holds[1:], 2},
		{billing.RefundEntry, domain.Page{Number: 1, Size: 20}, nil, 0},
	} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{Type: c.filter}, c.page)
			var refs []string
			for _, e := range list.Items {
				refs = append(refs, e.Ref)
			}
			if diff := cmp.Diff(c.want, refs); diff != "" || list.Total != c.total || list.Page != c.page {
				t.Errorf("type %q, %+v: total %d (-want +got):\n%s", c.filter, c.page, list.Total, diff)
			}
			return err
		})
	}
	for of, want := range map[billing.Type][]string{"": all, billing.HoldEntry: holds} {
		got := readOn(t, func() { mustPost(t, st, fund("agt_1", fmt.Sprint("later:", of, all), 10)); all = append(all, "") },
			func(page domain.Page) (refs []string, next int64) {
				view(t, st, func(ctx context.Context, tx ports.Tx) error {
					list, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{Type: of}, page)
					for _, e := range list.Items {
						refs = append(refs, e.Ref)
					}
					next = list.Next
					return err
				})
				return refs, next
			})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("type %q by cursor (-want +got):\n%s", of, diff)
		}
	}
}
